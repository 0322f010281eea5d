// Lets programs that cannot send a token ask a server that wants one.
//
// usage: TOKEN=... node auth-proxy.mjs TARGET_PORT      prints its own port and serves until standard input ends
//
// A request for the proxy itself goes on as one for the server: `Host` names the server, and an `Origin` that is the proxy's own is left
// out, since the server takes none. Every other `Host` and `Origin` goes on as it is, so that the server is seen to refuse it.
import http from 'node:http';

const target = Number(process.argv[2]);
const token = process.env.TOKEN;

function headersFor(request, port) {
  const headers = { ...request.headers };
  for (const name of ['127.0.0.1', 'localhost']) {
    if (headers.host === `${name}:${port}`) headers.host = `127.0.0.1:${target}`;
    if (headers.origin === `http://${name}:${port}`) delete headers.origin;
  }
  headers.authorization ??= `Bearer ${token}`;
  return headers;
}

const server = http.createServer((request, response) => {
  const headers = headersFor(request, server.address().port);
  const options = { host: '127.0.0.1', port: target, method: request.method, path: request.url, headers };
  const upstream = http.request(options, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    response.flushHeaders();
    answer.pipe(response);
  });
  upstream.on('error', (error) => {
    if (!response.headersSent) response.writeHead(502);
    response.end(String(error));
  });
  // A client that leaves cancels its call, so the server must hear of it.
  response.on('close', () => upstream.destroy());
  request.pipe(upstream);
});

server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit()).resume();
