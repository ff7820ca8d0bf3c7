#include "assay/base.h"

namespace assay {

std::string_view ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid-argument";
    case ErrorCode::kFormat:
      return "format";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kAllocation:
      return "allocation";
    case ErrorCode::kDevice:
      return "device";
    case ErrorCode::kKernelUnknown:
      return "kernel-unknown";
    case ErrorCode::kKernelCompile:
      return "kernel-compile";
    case ErrorCode::kCommandBuffer:
      return "command-buffer";
    case ErrorCode::kNotFound:
      return "not-found";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "internal";
}

std::string Error::ToString() const {
  std::string text = message_;
  for (size_t i = 0; i < context_.size(); ++i) {
    text.append(i == 0 ? " This was while " : ", while ").append(context_[i]);
  }
  if (!context_.empty()) text += '.';
  // Messages may quote outside bytes; one error stays one line.
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

}  // namespace assay
