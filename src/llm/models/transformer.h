// The forward pass that the architectures share: embedding, attention blocks, final norm and
// logits, encoded into a session with as few barriers as their data allows.
#ifndef ASSAY_LLM_MODELS_TRANSFORMER_H_
#define ASSAY_LLM_MODELS_TRANSFORMER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "assay/base.h"
#include "assay/gpu.h"
#include "assay/kernels.h"
#include "assay/llm.h"

#include "llm/models/architecture.h"

namespace assay::llm {

// One intermediate result in the formats that its readers want; those that nobody wants are empty.
struct FormattedRows {
  kernels::Activations f32;
  kernels::Activations q8;

  const kernels::Activations& In(kernels::ActivationFormat format) const {
    return format == kernels::ActivationFormat::kQ8 ? q8 : f32;
  }
};

// The work space of one pass over `rows` tokens, as views cut to that many rows. Row p of the wide
// operands belongs to token p / fan, where fan is the number of experts used (1 in dense models).
struct StepBuffers {
  uint32_t rows = 0;
  gpu::BufferView ids;  // int32, written by the host
  kernels::Matrix x;    // the residual stream
  FormattedRows norm;   // x, normalised
  kernels::Matrix q, k, v;
  FormattedRows attended;
  kernels::AttentionRoom room;     // of any number of rows; empty where the device takes none
  kernels::Matrix router;          // logits of the experts
  gpu::BufferView expert_ids;      // int32, rows x used
  gpu::BufferView expert_weights;  // f32, rows x used
  kernels::Matrix gate, up;        // rows * fan x feed_forward
  FormattedRows gated;             // silu(gate) * up
  kernels::Matrix expert_out;      // rows * used x hidden
  FormattedRows output_norm;       // the last row of x, normalised
  kernels::Matrix logits;          // 1 x vocabulary
  gpu::BufferView best;            // int32, the argmax of the logits
};

// The same for all rows of a pass, and for its last row alone, which is all that matters once the
// last layer has appended its keys and values. The operands that carry a value across that point (x
// and norm) are the last row's own bytes; the others start anew.
struct PassBuffers {
  StepBuffers all;
  StepBuffers last;
};

// Keys and values of every position so far, one pair of matrices a layer (context x kv dim).
struct KvCache {
  std::vector<kernels::Matrix> k, v;
};

// The work space, allocated once for the largest pass; Cut() makes the views of a smaller one
// without allocating device memory. Thread-compatible.
class Scratch final {
 public:
  // `ops` says which formats the weights want, and what attention over `context` positions takes.
  // Errors: those of Device::CreateBuffer and Device::Write.
  static Result<Scratch> Create(gpu::Device& device, const kernels::Ops& ops, const Config& config,
                                const Weights& weights, uint32_t max_rows, uint32_t context);
  // The views for `rows` tokens, 1 <= rows <= max_rows.
  Result<PassBuffers> Cut(uint32_t rows) const;
  uint32_t max_rows() const { return max_.rows; }
  // Positions at which a pass binds most of attention's room, or 0 (AttentionRoomBytes::turn).
  uint32_t attention_turn() const { return attention_turn_; }
  // What nobody needs after a pass, nor in the next one: all but the ids, the logits, their argmax
  // and the zeros of attention's counters.
  std::vector<gpu::BufferView> Dead() const;

 private:
  Scratch() = default;
  Result<StepBuffers> CutRows(uint32_t rows) const;
  StepBuffers max_;
  uint32_t attention_turn_ = 0;
};

// What its buffers take.
Result<uint64_t> KvCacheBytes(const Config& config, KvType type, uint32_t context);
Result<KvCache> CreateKvCache(gpu::Device& device, const Config& config, KvType type,
                              uint32_t context);

// Encodes one pass. Borrows everything; lives for one pass or capture.
class LayerEncoder final {
 public:
  LayerEncoder(gpu::Session& session, kernels::Ops& ops, const Config& config,
               const PassBuffers& pass, bool place_barriers, bool positions_only = false)
      : session_(session),
        ops_(ops),
        config_(config),
        pass_(pass),
        step_(&pass.all),
        place_barriers_(place_barriers),
        positions_only_(positions_only) {}

  gpu::Session& session() { return session_; }
  kernels::Ops& ops() { return ops_; }
  const Config& config() const { return config_; }
  // What the next operations work on: all rows, or from the end of the last layer's attention on
  // the last row.
  const StepBuffers& step() const { return *step_; }

  // Places a barrier, unless the session or a plan does.
  Status Barrier() { return place_barriers_ ? session_.Barrier() : Status(); }

  // An operation that is the same at every position: `encode` gives its Status. A pass that is
  // captured again keeps it.
  template <typename Encode>
  Status Fixed(const Encode& encode) {
    return positions_only_ ? session_.KeepCaptured() : encode();
  }

  // The operand in the format that `weights` want.
  const kernels::Activations& NormFor(const kernels::Matrix& weights) const {
    return step_->norm.In(ops_.InputFormat(weights.type));
  }
  const kernels::Activations& GatedFor(const kernels::Matrix& weights) const {
    return step_->gated.In(ops_.InputFormat(weights.type));
  }

  // From the ids to the cache of every layer; with `want_logits` on to the logits of the last row
  // and their argmax.
  Status Encode(const Architecture& architecture, const Weights& weights, const KvCache& cache,
                uint32_t first_position, bool want_logits);

 private:
  // Normalises x into step().norm, in each format that one of `readers` wants.
  Status Norm(const gpu::BufferView& weight, std::initializer_list<const kernels::Matrix*> readers);
  // From x to the cache, for all rows; the queries of `queries` too, unless it is null.
  Status KeysAndValues(const LayerWeights& layer, const kernels::Matrix& k_cache,
                       const kernels::Matrix& v_cache, uint32_t first_position,
                       const StepBuffers* queries);
  // From the queries of step() to x.
  Status Attend(const LayerWeights& layer, const kernels::Matrix& k_cache,
                const kernels::Matrix& v_cache, uint32_t first_position);
  Status Output(const Weights& weights);

  gpu::Session& session_;
  kernels::Ops& ops_;
  const Config& config_;
  const PassBuffers& pass_;
  const StepBuffers* step_;
  const bool place_barriers_;
  const bool positions_only_;
};

}  // namespace assay::llm

#endif  // ASSAY_LLM_MODELS_TRANSFORMER_H_
