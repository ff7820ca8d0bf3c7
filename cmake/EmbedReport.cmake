# Writes the source that holds the style, the frame and the script of the report's page, with the digests of style and
# script as a content security policy names them.
#
#   cmake -DSTYLE=report.css -DDARK=dark.css -DVIEWER=viewer.html -DSCRIPT=report.js -DOUT=report_assets.cc -P EmbedReport.cmake

set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")

# The SHA-256 of a text in base 64. Its 32 bytes are ten groups of three and one of two.
function(digest_in_base64 hashed out)
  string(SHA256 hex "${hashed}")
  set(text)
  foreach(at RANGE 0 60 6)
    string(SUBSTRING "${hex}00" ${at} 6 group)
    math(EXPR value "0x${group}")
    foreach(shift 18 12 6 0)
      math(EXPR index "(${value} >> ${shift}) & 63")
      string(SUBSTRING "${alphabet}" ${index} 1 letter)
      string(APPEND text "${letter}")
    endforeach()
  endforeach()
  string(LENGTH "${text}" length)
  math(EXPR length "${length} - 1")
  string(SUBSTRING "${text}" 0 ${length} text)
  set(${out} "${text}=" PARENT_SCOPE)
endfunction()

foreach(asset STYLE SCRIPT)
  file(READ "${${asset}}" ${asset}_TEXT)
  if(asset MATCHES "^STYLE$")
    # The colours of the dark theme have one owner and two places: the system's wish and the reader's.
    file(READ "${DARK}" dark)
    string(REPLACE "@dark;" "${dark}" STYLE_TEXT "${STYLE_TEXT}")
  endif()
  digest_in_base64("${${asset}_TEXT}" ${asset}_DIGEST)
  # The digest is of all that stands in the element, which nothing in the text may end.
  if("${${asset}_TEXT}" MATCHES "</s")
    message(FATAL_ERROR "${${asset}} holds \"</s\", which ends the element that it is put into.")
  endif()
endforeach()

file(READ "${VIEWER}" VIEWER_TEXT)
file(WRITE "${OUT}.new" "#include \"prove/report_assets.h\"

namespace assay::prove {

const ReportAssets& Assets() {
  static constexpr ReportAssets kAssets = {
      R\"assay(${STYLE_TEXT})assay\",
      R\"assay(${VIEWER_TEXT})assay\",
      R\"assay(${SCRIPT_TEXT})assay\",
      \"sha256-${STYLE_DIGEST}\",
      \"sha256-${SCRIPT_DIGEST}\"};
  return kAssets;
}

}  // namespace assay::prove
")
file(RENAME "${OUT}.new" "${OUT}")
