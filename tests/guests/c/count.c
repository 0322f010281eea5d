// Counts lines, words and bytes of a text or of a file. A program like any other: it knows nothing of capsules.
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct counts {
  unsigned long lines, words, bytes;
};

static struct counts count(FILE *file) {
  struct counts seen = {0};
  bool inside = false;
  for (int c; (c = getc(file)) != EOF;) {
    seen.bytes++;
    seen.lines += c == '\n';
    seen.words += !isspace(c) && !inside;
    inside = !isspace(c);
  }
  return seen;
}

int main(int argc, char **argv) {
  static const struct option options[] = {{"file", required_argument, NULL, 'f'}, {"text", required_argument, NULL, 't'}, {0}};
  FILE *file = NULL;
  for (int option; (option = getopt_long(argc, argv, "f:t:", options, NULL)) != -1;) {
    if (option == '?') return 2;
    file = option == 'f' ? fopen(optarg, "r") : fmemopen(optarg, strlen(optarg), "r");
    if (file == NULL) {
      fprintf(stderr, "count: %s: %s\n", optarg, strerror(errno));
      return 1;
    }
  }
  if (file == NULL) {
    fputs("count: give it --text or --file\n", stderr);
    return 2;
  }
  struct counts seen = count(file);
  printf("{\"lines\": %lu, \"words\": %lu, \"bytes\": %lu}\n", seen.lines, seen.words, seen.bytes);
  return 0;
}
