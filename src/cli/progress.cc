#include "cli/progress.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include <fmt/format.h>

namespace assay::cli {
namespace {
constexpr std::string_view kWipe = "\r\x1b[K";
}  // namespace

struct Progress::State {
  Output* output;
  std::string label;
  std::atomic<uint64_t> total{0};
  std::string unit;
  Pace pace;
  std::atomic<uint64_t> done{0};
  std::mutex mutex;
  std::condition_variable_any wake;
  std::jthread drawer;  // Last, so that it ends before what it reads.

  void Draw(const std::stop_token& stop) {
    const auto start = std::chrono::steady_clock::now();
    bool drawn = false;
    std::unique_lock lock(mutex);
    const auto stopped = [&stop] { return stop.stop_requested(); };
    for (auto wait = pace.first_draw; !wake.wait_for(lock, stop, wait, stopped);
         wait = pace.redraw) {
      if (stop.stop_requested()) break;
      const auto elapsed = std::chrono::duration_cast<std::chrono::seconds>(
          std::chrono::steady_clock::now() - start);
      output->Write(kWipe);
      output->Write(FormatProgress(label, done.load(std::memory_order_relaxed),
                                   total.load(std::memory_order_relaxed), unit, elapsed));
      output->Flush();
      drawn = true;
    }
    if (!drawn) return;
    output->Write(kWipe);
    output->Flush();
  }
};

Progress::Progress(Output* output, std::string label, uint64_t total, std::string unit, Pace pace) {
  if (output == nullptr) return;
  state_ = std::make_unique<State>();
  state_->output = output;
  state_->label = std::move(label);
  state_->total = total;
  state_->unit = std::move(unit);
  state_->pace = pace;
  state_->drawer =
      std::jthread([state = state_.get()](const std::stop_token& stop) { state->Draw(stop); });
}

Progress::Progress(Progress&&) noexcept = default;
Progress::~Progress() = default;

void Progress::Update(uint64_t done) {
  if (state_ != nullptr) state_->done.store(done, std::memory_order_relaxed);
}

void Progress::Update(uint64_t done, uint64_t total) {
  if (state_ != nullptr) state_->total.store(total, std::memory_order_relaxed);
  Update(done);
}

std::string FormatProgress(std::string_view label, uint64_t done, uint64_t total,
                           std::string_view unit, std::chrono::seconds elapsed) {
  std::string text(label);
  if (total > 0) {
    const double share = 100.0 * static_cast<double>(done) / static_cast<double>(total);
    text +=
        fmt::format(": {} of {}{}{} ({:.0f} %)", done, total, unit.empty() ? "" : " ", unit, share);
  } else if (done > 0) {
    text += fmt::format(": {}{}{}", done, unit.empty() ? "" : " ", unit);
  }
  return text + fmt::format(", {} s", elapsed.count());
}

}  // namespace assay::cli
