// Progress: one line on the terminal about a step that takes long.
#ifndef ASSAY_CLI_PROGRESS_H_
#define ASSAY_CLI_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "cli/output.h"

namespace assay::cli {

// Draws on a thread of its own from one second after its start, a few times a second, and wipes the
// line at the end; a step that ends sooner is never seen. Update() is a single store and may be
// called from any thread, as often as wanted. Nothing else may write to the output while it lives.
class Progress final {
 public:
  struct Pace {
    std::chrono::milliseconds first_draw{1000};  // After the start.
    std::chrono::milliseconds redraw{200};
  };
  // `output` null: never draws and starts no thread. It must outlive the progress.
  Progress(Output* output, std::string label, uint64_t total, std::string unit)
      : Progress(output, std::move(label), total, std::move(unit), Pace()) {}
  Progress(Output* output, std::string label, uint64_t total, std::string unit, Pace pace);
  ~Progress();
  Progress(Progress&&) noexcept;
  Progress& operator=(Progress&&) = delete;

  void Update(uint64_t done);
  // For a step whose total shows only on the way.
  void Update(uint64_t done, uint64_t total);
  // False when there is nowhere to draw.
  bool draws() const { return state_ != nullptr; }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// "loading weights: 12 of 34 tensors (35 %), 2 s"; without a total: "comparing, 2 s".
std::string FormatProgress(std::string_view label, uint64_t done, uint64_t total,
                           std::string_view unit, std::chrono::seconds elapsed);

}  // namespace assay::cli

#endif  // ASSAY_CLI_PROGRESS_H_
