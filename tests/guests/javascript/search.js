// Searches a text with a regular expression: a tool of the interface murmur:tool/run.
import { emitChunk } from "murmur:stream/events@0.1.0";

const result = (status, data) => ({ status, data, truncated: false, metadata: [["state_effect", "read"]] });

function search({ text, pattern, group, repeat = 1 }) {
  const found = [];
  for (const match of text.repeat(repeat).matchAll(new RegExp(pattern, "g"))) {
    found.push({ at: match.index, text: group ? match.groups[group] : match[0] });
  }
  emitChunk(`${found.length} found\n`);
  return found;
}

export const run = {
  run(input) {
    try {
      return result("passed", JSON.stringify(search(JSON.parse(input.data ?? "{}"))));
    } catch (error) {
      // What a tool can explain is a failed call. An exception that it does not catch ends the component.
      if (error instanceof SyntaxError || /out of memory/.test(error.message)) {
        return result("failed", String(error));
      }
      throw error;
    }
  },
};
