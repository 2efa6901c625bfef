// SPDX-License-Identifier: Apache-2.0
// Writes pictures as SVG.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace torii {

struct SvgPoint {
  double x = 0;
  double y = 0;
};

/// A number and a place as paths write them: "12.5", "12.5 3.0".
std::string svg_text(double number);
std::string svg_text(SvgPoint point);

/// A self-contained SVG document on white, or on dark grey where the reader prefers that, drawn from back to front.
/// `more` has further attributes, as words without quotes and with no blank in a value: "fill=none stroke=#333
/// stroke-dasharray=6,4". `title` is what a viewer shows under the pointer. Words and titles are plain text.
class Svg {
 public:
  Svg(double width, double height, int font_size);

  /// The title of the whole document.
  void title(std::string_view words);
  void text(double x, double y, std::string_view words, std::string_view more = {}, std::string_view title = {});
  void line(SvgPoint from, SvgPoint to, std::string_view more, std::string_view title = {});
  /// `corner` is the upper left one.
  void rect(SvgPoint corner, double width, double height, std::string_view more, std::string_view title = {});
  void circle(SvgPoint centre, double radius, std::string_view more = {}, std::string_view title = {});
  void path(std::string_view data, std::string_view more, std::string_view title = {});
  void polyline(std::span<const SvgPoint> points, std::string_view more);
  /// Lines with marker-end=url(#id) end in a triangle of this colour and length, in widths of the line unless `more`
  /// says markerUnits=userSpaceOnUse.
  void arrow_head(std::string_view id, std::string_view colour, int length = 6, std::string_view more = {});

  /// The document.
  std::string str() const { return text_ + "</svg>\n"; }

 private:
  void element(std::string_view name, const std::string& attributes, std::string_view more, std::string_view title);

  std::string text_;
};

}  // namespace torii
