// Colours as their parts, and mixed: functions that any component host can call.
#include "generated/palette.h"

typedef exports_example_palette_colours_rgb_t rgb;

// The value of a hexadecimal digit; -1 of anything else.
static int digit(uint8_t c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool exports_example_palette_colours_parse(palette_string_t *text, rgb *ret, palette_string_t *err) {
  uint8_t parts[3];
  bool good = text->len == 7 && text->ptr[0] == '#';
  for (int at = 0; good && at < 3; at++) {
    int high = digit(text->ptr[1 + 2 * at]), low = digit(text->ptr[2 + 2 * at]);
    good = high >= 0 && low >= 0;
    parts[at] = (uint8_t)(high * 16 + low);
  }
  palette_string_free(text);
  if (good) {
    *ret = (rgb){parts[0], parts[1], parts[2]};
  } else {
    palette_string_dup(err, "a colour is written as #rrggbb");
  }
  return good;
}

void exports_example_palette_colours_mix(exports_example_palette_colours_list_rgb_t *colours, rgb *ret) {
  unsigned red = 0, green = 0, blue = 0, count = colours->len;
  for (size_t at = 0; at < count; at++) {
    red += colours->ptr[at].red;
    green += colours->ptr[at].green;
    blue += colours->ptr[at].blue;
  }
  // Of no colours at all there is no middle: WebAssembly traps on a division by zero.
  *ret = (rgb){(uint8_t)(red / count), (uint8_t)(green / count), (uint8_t)(blue / count)};
  exports_example_palette_colours_list_rgb_free(colours);
}
