// Kernels: the operations of a transformer as dispatches, each declaring the exact bytes it
// touches.
//
// Every operation gives the same bits for a row whatever rows stand beside it in the call, so that
// a prompt may be cut into chunks of any size (G6), unless OpsOptions say otherwise. Matrices are
// row-major and contiguous; sizes are in elements unless a name says bytes.
#ifndef ASSAY_KERNELS_H_
#define ASSAY_KERNELS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "assay/base.h"
#include "assay/gpu.h"
#include "assay/gpu_graph.h"

namespace assay::kernels {

// How numbers are stored. Quantised types are blocks of ggml's layout.
enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kI32,
  kQ8_0,  // 32 values in 34 bytes: f16 scale, 32 x int8.
  kQ4_0,  // 32 values in 18 bytes: f16 scale, 16 bytes of two 4-bit values, each minus 8.
};
std::string_view DTypeName(DType type);  // "F32", "Q8_0", ...
// Values in a block and its bytes; 1 and the element's size for the plain types.
uint32_t DTypeBlockSize(DType type);
uint32_t DTypeBlockBytes(DType type);
// Bytes of one row of `cols` values. kInvalidArgument when cols is not a whole number of blocks.
Result<uint64_t> RowBytes(DType type, uint64_t cols);

// `rows` x `cols` values of `type`. For a weight, rows are outputs and cols inputs.
struct Matrix {
  gpu::BufferView view;
  DType type = DType::kF32;
  uint32_t rows = 0;
  uint32_t cols = 0;
};

// Inputs of a matrix product. kQ8 is the kernels' own layout: int8 values with a float32 scale for
// each 32 of them; the cpu backend multiplies quantised weights with it through int8 dot products.
// cols is then a multiple of 32.
enum class ActivationFormat : uint8_t { kF32, kQ8 };
struct Activations {
  gpu::BufferView view;
  ActivationFormat format = ActivationFormat::kF32;
  uint32_t rows = 0;
  uint32_t cols = 0;
};
uint64_t ActivationBytes(ActivationFormat format, uint64_t rows, uint64_t cols);

// Room in which the workgroups of an Attention meet, where several of them share the positions of a
// query. `partials` begins at a multiple of 16 bytes and holds nothing between dispatches;
// `counters` holds zeros, which the dispatch leaves there again. Dispatches that no barrier
// separates need a room each.
struct AttentionRoom {
  gpu::BufferView partials;
  gpu::BufferView counters;
};
struct AttentionRoomBytes {
  uint64_t partials = 0;
  uint64_t counters = 0;
  // What a token takes grows with the positions that it sees up to so many, and then anew from
  // less.
  uint32_t turn = 0;
};

// Puts rows of weights of `type`, as files hold them, into the layout that the kernels read where
// Ops::PacksWeights says so, in place and in as many bytes. Each row by itself, so that any rows of
// a matrix may be packed apart. `bytes` holds `rows` rows of `cols` columns, whole blocks.
void PackWeights(DType type, uint64_t rows, uint64_t cols, std::span<std::byte> bytes);

// Which runs of operations one kernel can replace with the same bits on a device; for
// gpu::PlanOptions. Lives for ever.
std::span<const gpu::FusionRule> FusionRules(const gpu::DeviceInfo& info);

// Adds the kernels of src/kernels/kernels.cc that the device has code for to its registry.
Status RegisterKernels(gpu::Device& device);

struct OpsOptions {
  // Products of 16 tokens or more, and products by expert of 8 pairs an expert or more, go through
  // the device's matrix units (docs/shaders.md): faster by far, but weights and activations are
  // rounded to f16 and added in the device's order, so that a row's bits depend on how many rows
  // stand beside it (no G6).
  bool cooperative_matrix = false;
};

// The operations, encoded into a session. Errors are kInvalidArgument with the operand's name and
// both sizes, kUnsupported where the device has no kernel for a form (kQ8 outputs) or a size, and
// whatever the session returns. f32 operands are Matrix with type kF32. Thread-compatible; borrows
// the device.
class Ops final {
 public:
  // Registers the kernels where that has not been done. Error kUnsupported for an option that the
  // device has no path for.
  static Result<std::unique_ptr<Ops>> Create(gpu::Device* device, const OpsOptions& options = {});
  ~Ops();
  Ops(const Ops&) = delete;
  Ops& operator=(const Ops&) = delete;

  // The format in which MatMul wants its input for weights of `type` on this device.
  ActivationFormat InputFormat(DType weight_type) const;
  // True when `type` may stand in MatMul, MatMulByExpert and Embedding.
  bool SupportsWeights(DType type) const;
  // True when weights of `type` must have gone through PackWeights on this device.
  bool PacksWeights(DType type) const;

  // out[i] = table[ids[i]] as f32. `ids` holds out.rows int32, each below table.rows (a larger one
  // gives a row of zeros).
  Status Embedding(gpu::Session& session, const Matrix& table, const gpu::BufferView& ids,
                   const Matrix& out);

  // out = x / sqrt(mean(x^2) + eps) [* weight], row by row. `weight` is f32 of x.cols values, or
  // empty.
  Status RmsNorm(gpu::Session& session, const Matrix& x, const gpu::BufferView& weight, float eps,
                 const Activations& out);

  // x rounded into the format of `out`.
  Status Quantize(gpu::Session& session, const Matrix& x, const Activations& out);

  // out[i][r] = dot(weights[r], x[i]) [+ residual[i][r]]. `residual` is f32 of out's shape, empty
  // or exactly `out` itself. Weights that are larger than one binding of the device may be take
  // several dispatches, of some rows each.
  Status MatMul(gpu::Session& session, const Matrix& weights, const Activations& x,
                const Matrix& out, const gpu::BufferView& residual = {});

  // `weights` stacks `experts` matrices of weights.rows / experts rows. Pair p = (i, j) of
  // `expert_ids` (int32, x rows or tokens x used): out[p] = weights[expert_ids[p]] * x[p / fan],
  // where fan = pairs / x.rows (used for the up projections, 1 for the down projection). No trip to
  // the host.
  Status MatMulByExpert(gpu::Session& session, const Matrix& weights, uint32_t experts,
                        const gpu::BufferView& expert_ids, const Activations& x, const Matrix& out);

  // For each head of each row: rms norm with `weight` (head_dim f32; empty: none), then rotation by
  // row i's position first_position + i, "neox" pairing (j, j + head_dim / 2), angle position *
  // base^(-2j / head_dim). In place; x.cols = heads * head_dim.
  Status HeadNormRope(gpu::Session& session, const Matrix& x, uint32_t head_dim,
                      const gpu::BufferView& weight, float eps, uint32_t first_position,
                      float base);

  // Either half of the former on its own.
  Status HeadNorm(gpu::Session& session, const Matrix& x, uint32_t head_dim,
                  const gpu::BufferView& weight, float eps);
  Status Rope(gpu::Session& session, const Matrix& x, uint32_t head_dim, uint32_t first_position,
              float base);

  // Copies the rows of k and v to rows first_position, ... of the caches (kF32 or kF16, context x
  // kv_dim).
  Status KvAppend(gpu::Session& session, const Matrix& k, const Matrix& v, uint32_t first_position,
                  const Matrix& k_cache, const Matrix& v_cache);

  // Causal attention, query heads in groups over kv heads: row i of q (heads * head_dim) sees cache
  // rows 0 .. first_position + i. scale multiplies q.k before the softmax.
  // The bits do not depend on `room`; without one a workgroup takes all positions of its queries,
  // which for few tokens leaves most of a GPU idle.
  Status Attention(gpu::Session& session, const Matrix& q, const Matrix& k_cache,
                   const Matrix& v_cache, uint32_t head_dim, uint32_t first_position, float scale,
                   const Activations& out, const AttentionRoom& room = {});
  // What Attention takes at most for up to `tokens` rows and `context` positions; nothing on
  // devices that have no use for it.
  AttentionRoomBytes RoomForAttention(uint32_t tokens, uint32_t heads, uint32_t kv_heads,
                                      uint32_t head_dim, uint32_t context) const;

  // out = silu(gate) * up.
  Status SiluMul(gpu::Session& session, const Matrix& gate, const Matrix& up,
                 const Activations& out);
  Status Add(gpu::Session& session, const Matrix& a, const Matrix& b, const Matrix& out);
  Status Mul(gpu::Session& session, const Matrix& a, const Matrix& b, const Matrix& out);

  // Softmax over each row of `logits` (tokens x experts), then the `used` largest, larger first,
  // the lower id first on a tie: expert_ids int32 and expert_weights f32, tokens x used. With
  // `normalise` the weights of a row are scaled to sum 1.
  Status Route(gpu::Session& session, const Matrix& logits, uint32_t used, bool normalise,
               const gpu::BufferView& expert_ids, const gpu::BufferView& expert_weights);

  // out[i] = sum over j of weights[i][j] * x[i * used + j] [+ residual[i]], in order of j.
  Status WeightedSum(gpu::Session& session, const Matrix& x, const gpu::BufferView& expert_weights,
                     uint32_t used, const Matrix& out, const gpu::BufferView& residual = {});

  // --- Fused: each gives the bits of the operations it names, one after another, and needs no room
  // for what lies between them.

  // SiluMul of MatMul(gate, x) and MatMul(up, x). For few rows: the weights are read for each.
  Status GateUp(gpu::Session& session, const Matrix& gate, const Matrix& up, const Activations& x,
                const Activations& out);
  // SiluMul of MatMulByExpert(gate, ...) and MatMulByExpert(up, ...). For few rows.
  Status GateUpByExpert(gpu::Session& session, const Matrix& gate, const Matrix& up,
                        uint32_t experts, const gpu::BufferView& expert_ids, const Activations& x,
                        const Activations& out);
  // WeightedSum of MatMulByExpert(weights, ...) with fan 1, and the residual. For few rows.
  Status DownByExpertSum(gpu::Session& session, const Matrix& weights, uint32_t experts,
                         const gpu::BufferView& expert_ids, const Activations& x,
                         const gpu::BufferView& expert_weights, const Matrix& out,
                         const gpu::BufferView& residual);
  // RmsNorm into `norm`, MatMul(router, norm) and Route. `router` and `norm` are f32.
  Status NormRoute(gpu::Session& session, const Matrix& x, const gpu::BufferView& weight, float eps,
                   const Matrix& router, const Matrix& norm, uint32_t used, bool normalise,
                   const gpu::BufferView& expert_ids, const gpu::BufferView& expert_weights);
  // HeadNormRope of k, which stays as it is, and KvAppend of the result and v. `weight` is not
  // empty.
  Status HeadNormRopeAppend(gpu::Session& session, const Matrix& k, uint32_t head_dim,
                            const gpu::BufferView& weight, float eps, uint32_t first_position,
                            float base, const Matrix& v, const Matrix& k_cache,
                            const Matrix& v_cache);

  // out[i] (int32) = the lowest column of the largest value of row i; a NaN never wins.
  Status ArgMax(gpu::Session& session, const Matrix& x, const gpu::BufferView& out);

 private:
  struct State;
  explicit Ops(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_H_
