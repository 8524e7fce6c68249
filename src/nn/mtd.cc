// Construction, the plan of a step, and the order of its parts; the parts with backward twins are in
// mtd_parts.cc.
#include "nn/mtd.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "nn/masks.h"
#include "nn/mtd_memory.h"

namespace lacuna {
namespace {

constexpr std::uint32_t kNoiseLayer = 1u << 30;  // no parameters are drawn by this number
constexpr std::size_t kLayersPerChain = 64;      // numbers of dropout layers reserved for one chain

std::vector<std::size_t> chain_widths(std::size_t in, const std::vector<std::string>& hidden, std::size_t out,
                                      std::size_t columns, std::size_t embedding, double factor) {
  std::vector<std::size_t> widths = {in};
  for (const std::size_t width : resolve_widths(hidden, columns, embedding, factor)) widths.push_back(width);
  widths.push_back(out);
  return widths;
}

double weights_of(const std::vector<std::size_t>& widths) {
  double sum = 0;
  for (std::size_t l = 0; l + 1 < widths.size(); ++l)
    sum += static_cast<double>(widths[l]) * static_cast<double>(widths[l + 1]);
  return sum;
}

std::size_t embedding_of(const MtdOptions& options, const NetworkShape& shape) {
  return options.embedding > 0 ? static_cast<std::size_t>(options.embedding) : shape.labels;
}
bool decodes(const MtdOptions& options, const NetworkShape& shape) {
  return options.gamma > 0 && !shape.prediction_only;
}

// Of one view, from its rows to the embedding and back.
std::vector<std::size_t> encoder_widths(const MtdOptions& options, const NetworkShape& shape, std::size_t v) {
  const std::size_t d = shape.columns[v], e = embedding_of(options, shape);
  return chain_widths(d, options.encoder_widths, e, d, e, options.width);
}
std::vector<std::size_t> decoder_widths(const MtdOptions& options, const NetworkShape& shape, std::size_t v) {
  const std::size_t d = shape.columns[v], e = embedding_of(options, shape);
  return chain_widths(e, options.decoder_widths, d, d, e, options.width);
}

// By the weights of the chains, which are numbered as MtdNetwork does.
Division division_of(const MtdOptions& options, const NetworkShape& shape) {
  std::vector<double> costs;
  for (std::size_t v = 0; v < shape.columns.size(); ++v)
    for (std::int64_t c = 0; c < options.channels; ++c) {
      costs.push_back(weights_of(encoder_widths(options, shape, v)));
      if (c == 0 && options.view_weight > 0 && !shape.prediction_only)
        costs.back() += weights_of({embedding_of(options, shape), shape.labels});
    }
  const std::size_t encoders = costs.size();
  for (std::size_t v = 0; decodes(options, shape) && v < shape.columns.size(); ++v)
    costs.push_back(weights_of(decoder_widths(options, shape, v)));
  return {shape.ranks != nullptr ? *shape.ranks : one_rank(), costs, encoders};
}

}  // namespace

std::vector<bool> views_read(const MtdOptions& options, const NetworkShape& shape) {
  const auto m = shape.columns.size(), channels = static_cast<std::size_t>(options.channels);
  std::vector<bool> read(m, options.fusion == Fusion::early);  // a single chain, which every rank computes
  if (options.fusion == Fusion::early) return read;
  const Division division = division_of(options, shape);
  for (std::size_t v = 0; v < m; ++v) {
    for (std::size_t c = 0; c < channels; ++c) read[v] = read[v] || division.mine(v * channels + c);
    if (decodes(options, shape)) read[v] = read[v] || division.mine(m * channels + v);
  }
  return read;
}

template <class T>
MtdNetwork<T>::MtdNetwork(const MtdOptions& options, const NetworkShape& shape, std::uint64_t seed,
                          std::shared_ptr<Ops<T>> ops)
    : options_(options),
      shape_(shape),
      embedding_(embedding_of(options, shape)),
      end_norm_(options.end_norm),
      seed_(seed),
      norm_{.epsilon = options.norm_epsilon, .momentum = options.norm_momentum},
      bce_(bce_settings(options)),
      graph_{.eta = options.graph_eta,
             .normalise = options.graph_normalise,
             .pairwise = options.graph_form == GraphForm::pairwise},
      contrast_{.share = options.contrast_share,
                .factor = options.contrast_factor,
                .epsilon = options.contrast_epsilon,
                .count = options.contrast_count,
                .positives = options.contrast_positives},
      ops_(std::move(ops)) {
  options_.check();
  if (shape_.columns.empty()) fail(Exit::data, "a network needs at least one view");
  if (shape_.labels == 0) fail(Exit::data, "a network needs at least one label");
  const char* channel_names[] = {"shared", "private"};
  const auto layers_of = [](std::size_t chain) {
    return static_cast<std::uint32_t>(chain * kLayersPerChain);
  };
  views_.resize(shape_.columns.size());
  if (shape_.ranks != nullptr && !shape_.ranks->alone() && !ops_->on_host())
    fail(Exit::usage, "several ranks compute on their CPUs only; use --device cpu");
  division_ = division_of(options_, shape_);  // before any parameter is added
  for (std::size_t v = 0; v < views_.size(); ++v) {
    View& view = views_[v];
    view.encoders.resize(channels());
    view.norms.resize(channels());
    for (std::size_t c = 0; c < channels(); ++c) {
      const std::string name = fmt::format("{}.{}", channel_names[c], v);
      parameters_.here(division_.mine(encoder(v, c)));
      view.encoders[c].add(parameters_, name, encoder_widths(options_, shape_, v), true,
                           layers_of(encoder(v, c)));
      view.norms[c].add(*ops_, parameters_, name + ".norm", embedding_, end_norm_);
    }
  }
  parameters_.here(true);
  classifier_.add(parameters_, "classifier", embedding_, shape_.labels, true);
  for (std::size_t v = 0; v < views_.size(); ++v) {
    parameters_.here(decodes_here(v));
    if (decodes())
      views_[v].decoder.add(parameters_, fmt::format("decoder.{}", v), decoder_widths(options_, shape_, v),
                            false, layers_of(decoder(v)));
    parameters_.here(classifies_here(v));
    if (classifies_views())
      views_[v].classifier.add(parameters_, fmt::format("view_classifier.{}", v), embedding_, shape_.labels,
                               false);
  }
  if (shape_.most_parameters > 0 && parameters() > shape_.most_parameters)
    fail(Exit::data, "the settings ask for {} parameters, the model file contains {} numbers", parameters(),
         shape_.most_parameters);
  parameters_.allocate(*ops_);
  if (shape_.prediction_only) return;  // the values come from a file
  for (const View& view : views_) {
    for (const auto& encoder : view.encoders) encoder.initialise(*ops_, parameters_, seed);
    for (const auto& norm : view.norms) norm.initialise(*ops_, parameters_);
    if (decodes()) view.decoder.initialise(*ops_, parameters_, seed);
    if (classifies_views()) view.classifier.initialise(*ops_, parameters_, seed, options_.classifier_bias);
  }
  classifier_.initialise(*ops_, parameters_, seed, options_.classifier_bias);
}

template <class T>
MtdNetwork<T>::~MtdNetwork() = default;

template <class T>
bool MtdNetwork<T>::encodes_here(std::size_t v) const {
  for (std::size_t c = 0; c < channels(); ++c)
    if (division_.mine(encoder(v, c))) return true;
  return false;
}

template <class T>
bool MtdNetwork<T>::reads_here(std::size_t v) const {
  return encodes_here(v) ||
         (decodes_here(v) && options_.reconstruction_target == ReconstructionTarget::masked);
}

template <class T>
Ranks::Part MtdNetwork<T>::part_of(std::size_t chain, MatrixView<T> rows, int reader) const {
  assert(rows.rows < 2 || rows.stride == rows.cols);
  return {rows.data, rows.rows * rows.cols * sizeof(T), division_.owner(chain), reader};
}

template <class T>
void MtdNetwork<T>::keep(OptimiserState state) {
  parameters_.keep(*ops_, state);
  soft_labels_.keep(*ops_, options_, shape_.training_rows, shape_.labels);
}

template <class T>
void MtdNetwork<T>::visit_buffers(typename BasicNetwork<T>::BufferVisitor visitor) {
  for (std::size_t v = 0; v < views_.size(); ++v)
    for (std::size_t c = 0; c < channels(); ++c)
      if (const MatrixView<T> running = views_[v].norms[c].running();
          !running.empty() && division_.mine(encoder(v, c)))
        visitor(fmt::format("{}.{}.norm.running", c == 0 ? "shared" : "private", v), running, true);
  soft_labels_.visit(visitor);
}

template <class T>
void MtdNetwork<T>::reserve(std::size_t rows) {
  if (memory_ && memory_->capacity >= rows) return;
  const Engine& engine = *ops_;
  memory_ = std::make_unique<Memory>();
  Memory& m = *memory_;
  m.capacity = rows;
  const std::size_t view_count = views_.size(), stack = view_count * (rows + 1);
  m.blocks.resize(view_count);
  m.targets.resize(view_count);
  m.left.resize(rows * view_count);
  m.fragments.resize(rows * view_count);
  m.slots = Matrix<std::int32_t>(rows, view_count);
  m.target_slots = Matrix<std::int32_t>(rows, view_count);
  m.encoders.resize(view_count);
  m.X_forms.resize(view_count);
  for (std::size_t v = 0; v < view_count; ++v) {
    for (auto* block : {&m.blocks[v], &m.targets[v]}) block->rows.reserve(rows);
    m.blocks[v].fragments.reserve(rows + 1);
    m.X.emplace_back(engine, reads_here(v) ? rows + 1 : 0, shape_.columns[v]);
    for (std::size_t c = 0; c < channels(); ++c) {
      const Chain<T>& chain = views_[v].encoders[c];
      const bool encodes = division_.mine(encoder(v, c)), used = encodes || (c == 0 && decodes_here(v));
      m.encoders[v].push_back(encodes ? chain.memory(*ops_, rows + 1) : ChainMemory<T>());
      const std::size_t widest =
          std::max({embedding_, chain.widest(), decodes() ? views_[v].decoder.widest() : 0});
      PingPong<T>& scratch = m.scratch.emplace_back();
      for (auto& buffer : scratch.buffers) buffer = Buffer<T>(engine, used ? rows + 1 : 0, widest);
      for (auto& form : scratch.gradients)
        if (used) form = ops_->step_form(rows + 1, widest);
    }
    if (!decodes()) continue;
    const std::size_t decoded = decodes_here(v) ? rows : 0;
    m.decoders.push_back(decodes_here(v) ? views_[v].decoder.memory(*ops_, rows) : ChainMemory<T>());
    for (auto* buffers : {&m.reconstruction, &m.target})
      buffers->emplace_back(engine, decoded, shape_.columns[v]);
  }
  for (std::size_t c = 0; c < channels(); ++c) {
    for (auto* matrix : {&m.U[c], &m.S[c], &m.dS[c]}) *matrix = EngineMatrix<T>(engine, stack, embedding_);
    m.saved[c] = EngineMatrix<T>(engine, stack, 2);
    for (auto* matrix : {&m.mean[c], &m.dmean[c]}) *matrix = EngineMatrix<T>(engine, rows, embedding_);
  }
  for (auto* matrix : {&m.F, &m.Z, &m.C, &m.dF}) *matrix = EngineMatrix<T>(engine, rows, embedding_);
  for (auto* matrix : {&m.logits, &m.dlogits}) *matrix = EngineMatrix<T>(engine, rows, shape_.labels);
  if (decodes())
    for (auto* matrix : {&m.D, &m.dD}) *matrix = EngineMatrix<T>(engine, stack, embedding_);
  if (classifies_views()) {
    for (auto* matrix : {&m.V, &m.dV}) *matrix = EngineMatrix<T>(engine, stack, embedding_);
    m.view_logits = EngineMatrix<T>(engine, stack, shape_.labels);
  }
  if (!tally_.ready()) tally_.reserve(engine, view_count);
  if (end_norm_ != EndNorm::batch_noise) return;
  m.noise_rows.resize(rows);
  std::iota(m.noise_rows.begin(), m.noise_rows.end(), 0u);
  for (std::size_t v = 0; v < view_count; ++v) {
    Random random(seed_, Purpose::initialise, kNoiseLayer + static_cast<std::uint32_t>(v));
    Matrix<float> noise(reads_here(v) ? rows : 0, shape_.columns[v]);
    for (float& x : noise.values()) x = random.normal();
    upload<float>(engine, noise, m.noise.emplace_back(engine, noise.rows(), shape_.columns[v]));
  }
}

template <class T>
LabelRows MtdNetwork<T>::labels(const Batch& batch) const {
  return {batch.items->Y_on(*ops_), batch.items->G_on(*ops_), memory_->rows(),
          label_weights_.on(*ops_, *batch.items, options_.label_weight)};
}

// Decides with the step's random numbers which instances the encoders see and which fragments are hidden, and
// gives every instance its row in the stack. All of it goes to the engine in one parcel.
template <class T>
void MtdNetwork<T>::plan(const Batch& batch) {
  Memory& m = *memory_;
  const Items& items = *batch.items;
  const std::size_t b = batch.rows.size(), view_count = views_.size();
  hide_views(batch, options_.view_dropout, m.left);
  m.stack_rows = m.target_rows = 0;
  const bool all_targets = options_.decoder_input == DecoderInput::fused && options_.reconstruct_hidden;
  for (std::size_t v = 0; v < view_count; ++v) {
    auto &block = m.blocks[v], &target = m.targets[v];
    block.rows.clear();
    block.fragments.clear();
    target.rows.clear();
    block.offset = m.stack_rows;
    target.offset = m.target_rows;
    for (std::size_t i = 0; i < b; ++i) {
      const std::uint32_t row = batch.rows[i];
      const bool left = m.left[i * view_count + v] != 0, wanted = all_targets ? items.W(row, v) != 0 : left;
      m.slots(i, v) = left ? static_cast<std::int32_t>(block.offset + block.rows.size()) : kNoRow;
      m.target_slots(i, v) = wanted ? static_cast<std::int32_t>(target.offset + target.rows.size()) : kNoRow;
      if (left) block.rows.push_back(row);
      if (wanted) target.rows.push_back(row);
    }
    block.missing = end_norm_ == EndNorm::batch ? b - block.rows.size() : 0;
    block.noise = end_norm_ == EndNorm::batch_noise ? b - block.rows.size() : 0;
    m.stack_rows += block.total();
    m.target_rows += target.total();
  }
  if (options_.mask_rate > 0) draw_fragments(batch, options_, shape_.columns, m.fragments);
  for (std::size_t v = 0; v < view_count; ++v) {
    auto& block = m.blocks[v];
    for (std::size_t i = 0; i < b; ++i)
      if (m.left[i * view_count + v] != 0)
        block.fragments.push_back(options_.mask_rate > 0 ? m.fragments[i * view_count + v] : Fragment{});
    block.fragments.resize(block.total(), {0, static_cast<std::uint32_t>(shape_.columns[v])});
  }

  m.parcel.clear();
  m.rows_piece = m.parcel.put(batch.rows);
  m.noise_piece = m.parcel.put(std::span<const std::uint32_t>(m.noise_rows));
  m.slots_piece = m.parcel.put(std::span<const std::int32_t>(m.slots.values()).first(b * view_count));
  m.target_slots_piece =
      m.parcel.put(std::span<const std::int32_t>(m.target_slots.values()).first(b * view_count));
  for (std::size_t v = 0; v < view_count; ++v) {
    auto &block = m.blocks[v], &target = m.targets[v];
    block.rows_piece = m.parcel.put(std::span<const std::uint32_t>(block.rows));
    block.fragments_piece = m.parcel.put(std::span<const Fragment>(block.fragments));
    target.rows_piece = m.parcel.put(std::span<const std::uint32_t>(target.rows));
    if (reads_here(v) && m.X_forms[v] == nullptr && end_norm_ != EndNorm::batch_noise)
      m.X_forms[v] = items.background(v).empty() ? ops_->step_form(m.capacity + 1, shape_.columns[v])
                                                 : ops_->input_form(m.capacity + 1, shape_.columns[v]);
  }
  m.parcel.send(*ops_);
}

template <class T>
Losses MtdNetwork<T>::step(const Batch& batch, const UpdateRule& rule) {
  start(batch, rule);
  return finish();
}

template <class T>
void MtdNetwork<T>::start(const Batch& batch, const UpdateRule& rule) {
  assert(!shape_.prediction_only && batch.items->views() == views_.size() &&
         batch.items->labels() == shape_.labels);
  const std::size_t b = batch.rows.size();
  reserve(b);
  Memory& m = *memory_;
  const bool guess = soft_labels_.prepare(*ops_, options_, batch, *whole_);
  const auto turn = ops_->turn();

  // The losses, in the order in which the total adds them.
  const bool graph = options_.alpha > 0, contrast = options_.beta > 0,
             instance = options_.instance_weight > 0;
  tally_.begin();
  double* const class_value = tally_.add("classification", 1);
  double* const guess_value = guess ? tally_.add("guess", options_.guess_weight) : nullptr;
  double* const graph_value = graph ? tally_.add("graph", options_.alpha) : nullptr;
  double* const contrast_value = contrast ? tally_.add("contrastive", options_.beta) : nullptr;
  double* const decode_values =
      decodes() ? tally_.add("reconstruction", options_.gamma, views_.size()) : nullptr;
  double* const view_value = classifies_views() ? tally_.add("view", options_.view_weight) : nullptr;
  double* const instance_value = instance ? tally_.add("instance", options_.instance_weight) : nullptr;

  plan(batch);
  encode(batch);
  fuse(batch);

  // From the logits back to the fused vector. dF holds the gradient of C, of Z and of F in turn.
  const MatrixView<T> logits = m.logits.view().top(b), dlogits = m.dlogits.view().top(b),
                      dF = m.dF.view().top(b);
  const MatrixView<const T> F = m.F.view().top(b), Z = m.Z.view().top(b), C = m.C.view().top(b);
  ops_->bce(logits, labels(batch), bce_, 1, dlogits, class_value);
  if (guess)
    ops_->guess_loss(logits, labels(batch), soft_labels_.view(), options_.guess_weight, dlogits, guess_value);
  const bool dropped = options_.fused_dropout > 0;
  const BackwardJob<T> classifier = classifier_.backward(parameters_, dropped ? C : Z, dlogits, false, dF);
  ops_->linear_backward({&classifier, 1}, rule);
  const DropoutJob<T> dropout{fused_draws(batch), dF};
  if (dropped) ops_->dropout(options_.fused_dropout, {&dropout, 1});
  if (graph) ops_->graph_loss(Z, labels(batch), graph_, options_.alpha, dF, graph_value);
  if (options_.fused_relu) ops_->activate_backward(Activation::relu, F, dF);

  // Gradients of the embeddings, from every loss that reads them.
  const std::size_t N = m.stack_rows;
  const Slots slots = m.slots_of(m.slots_piece);
  for (std::size_t c = 0; c < channels(); ++c) ops_->zero(m.dS[c].view().top(N));
  if (decodes()) decode(batch, rule, decode_values);
  if (channels() == 1) {
    ops_->spread(dF, slots, Share::mean, true, m.dS[0].view().top(N));
  } else if (!options_.gate) {
    for (auto& dS : m.dS) ops_->spread(dF, slots, Share::mean, true, dS.view().top(N));
  } else {
    ops_->gate_backward(m.mean[0].view().top(b), m.mean[1].view().top(b), dF, m.dmean[0].view().top(b),
                        m.dmean[1].view().top(b));
    for (std::size_t c = 0; c < 2; ++c)
      ops_->spread(m.dmean[c].view().top(b), slots, Share::mean, true, m.dS[c].view().top(N));
  }
  if (contrast)
    ops_->contrast_loss(m.S[0].view().top(N), m.S[1].view().top(N), slots, contrast_, options_.beta,
                        m.dS[0].view().top(N), m.dS[1].view().top(N), contrast_value);
  if (instance)
    ops_->instance_loss(m.S[0].view().top(N), slots, options_.instance_tau, options_.instance_weight,
                        m.dS[0].view().top(N), instance_value);
  if (classifies_views()) classify_views(batch, rule, view_value);
  encode_backward(rule);
  tally_.end();
}

template class MtdNetwork<float>;
template class MtdNetwork<double>;

}  // namespace lacuna
