// SPDX-License-Identifier: Apache-2.0
// SVG elements, one a line.
#include "collectives/drawing/svg.hpp"

#include <algorithm>
#include <cstdio>

namespace torii {
namespace {

/// Without the marks of SVG and without control characters.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '&') {
      result += "&amp;";
    } else if (c == '"') {
      result += "&quot;";
    } else if (static_cast<unsigned char>(c) >= ' ') {
      result += c;
    }
  }
  return result;
}

std::string attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + escaped(value) + "\"";
}
std::string attribute(std::string_view name, double value) { return attribute(name, svg_text(value)); }

/// name=value name=value, as SVG writes them.
std::string attributes(std::string_view words) {
  std::string result;
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    words.remove_prefix(std::min(word.size() + 1, words.size()));
    const std::size_t equals = word.find('=');
    result += attribute(word.substr(0, equals), word.substr(equals + 1));
  }
  return result;
}

// Readers on a dark background see light lines on a dark one: brightness is inverted, hues stay. A class keeps the rule
// to this picture where a page contains the document itself.
constexpr std::string_view kDark =
    "<style>@media(prefers-color-scheme:dark){.torii{filter:invert(.9)hue-rotate(180deg)}}</style>\n";

}  // namespace

std::string svg_text(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", number);
  return text;
}

std::string svg_text(SvgPoint point) { return svg_text(point.x) + " " + svg_text(point.y); }

Svg::Svg(double width, double height, int font_size)
    : text_("<svg" + attribute("xmlns", "http://www.w3.org/2000/svg") +
            attribute("viewBox", "0 0 " + svg_text({width, height})) + attribute("width", width) +
            attribute("height", height) + " class=\"torii\" font-family=\"sans-serif\" font-size=\"" +
            std::to_string(font_size) + "\">\n" + std::string(kDark) +
            "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n") {}

void Svg::element(std::string_view name, const std::string& own, std::string_view more, std::string_view title) {
  text_.append("<").append(name).append(attributes(more)).append(own);
  if (title.empty()) {
    text_ += "/>\n";
  } else {
    text_.append("><title>").append(escaped(title)).append("</title></").append(name).append(">\n");
  }
}

void Svg::title(std::string_view words) { text_ += "<title>" + escaped(words) + "</title>\n"; }

void Svg::text(double x, double y, std::string_view words, std::string_view more, std::string_view title) {
  text_ += "<text" + attribute("x", x) + attribute("y", y) + attributes(more) + ">" + escaped(words);
  if (!title.empty()) text_ += "<title>" + escaped(title) + "</title>";
  text_ += "</text>\n";
}

void Svg::line(SvgPoint from, SvgPoint to, std::string_view more, std::string_view title) {
  element("line", attribute("x1", from.x) + attribute("y1", from.y) + attribute("x2", to.x) + attribute("y2", to.y),
          more, title);
}

void Svg::rect(SvgPoint corner, double width, double height, std::string_view more, std::string_view title) {
  element("rect",
          attribute("x", corner.x) + attribute("y", corner.y) + attribute("width", width) + attribute("height", height),
          more, title);
}

void Svg::circle(SvgPoint centre, double radius, std::string_view more, std::string_view title) {
  element("circle", attribute("cx", centre.x) + attribute("cy", centre.y) + attribute("r", radius), more, title);
}

void Svg::path(std::string_view data, std::string_view more, std::string_view title) {
  element("path", attribute("d", data), more, title);
}

void Svg::polyline(std::span<const SvgPoint> points, std::string_view more) {
  std::string data;
  for (const SvgPoint point : points) data += svg_text(point.x) + "," + svg_text(point.y) + " ";
  element("polyline", attribute("points", data) + " fill=\"none\"", more, {});
}

void Svg::arrow_head(std::string_view id, std::string_view colour, int length, std::string_view more) {
  const std::string size = std::to_string(length);
  text_ += "<defs><marker" + attribute("id", id) + " viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\"" +
           attribute("markerWidth", size) + attribute("markerHeight", size) + " orient=\"auto\"" + attributes(more) +
           "><path d=\"M0 0L8 4L0 8z\"" + attribute("fill", colour) + "/></marker></defs>\n";
}

}  // namespace torii
