// The losses of networks: value and gradient in one call. Each is declared here, once. To use the list, define
// LACUNA_LOSS(name, parameters, arguments) and include this file. The conventions are at the top of ops/ops.h.
//
// To add a loss: its entry here, the naive version in ops/reference_losses.cc, the GPU's in cuda/losses.cu, its weight
// in nn/mtd_options.h and its call in nn/mtd.cc. The CPU engine uses the naive version unless ops/cpu.h overrides it.
#ifdef LACUNA_LOSS  // included without it, the file is empty

// Masked binary cross-entropy, eq. (10): logits (b, c); dlogits is written.
LACUNA_LOSS(bce, (Input logits, const LabelRows& labels, const BceSettings& settings, double weight,
            Output dlogits, double* value), (logits, labels, settings, weight, dlogits, value))

// Sum over the unknown entries of bce(logit, guess), guesses (n, c) held constant, over the number of KNOWN
// entries of the batch: with weight 1 an unknown entry counts like a known one. Adds to dlogits.
LACUNA_LOSS(guess_loss, (Input logits, const LabelRows& labels, Input guesses, double weight, Output dlogits,
            double* value), (logits, labels, guesses, weight, dlogits, value))

// Mean over (row, view, class) of share·bce(view logit, σ(logit) held constant) + (1-share)·bce(view logit,
// Y) G / mean(G). view_logits (N, c) are replaced by their gradient; stack rows without a slot are undefined.
LACUNA_LOSS(view_loss, (Input logits, const LabelRows& labels, Slots slots, double teacher_share, double weight,
            Output view_logits, double* value),
            (logits, labels, slots, teacher_share, weight, view_logits, value))

// Weak label-guided graph, eq. (5)-(7): Z (b, d); adds to dZ.
LACUNA_LOSS(graph_loss, (Input Z, const LabelRows& labels, const GraphSettings& settings, double weight,
            Output dZ, double* value), (Z, labels, settings, weight, dZ, value))

// Cross-channel contrast, eq. (1): stacks S, O (N, d); adds to dS, dO.
LACUNA_LOSS(contrast_loss, (Input S, Input O, Slots slots, const ContrastSettings& settings, double weight,
            Output dS, Output dO, double* value), (S, O, slots, settings, weight, dS, dO, value))

// Instance contrast between two views of the same rows (DICNet): for every pair of views the cross-entropy of
// cosines / τ, with the same row's other view as target and self-similarity replaced by 0; adds to dS.
LACUNA_LOSS(instance_loss, (Input S, Slots slots, double tau, double weight, Output dS, double* value),
            (S, slots, tau, weight, dS, value))

LACUNA_LOSS(reconstruction_loss, (Reconstructions jobs, std::size_t batch_rows, double weight),
            (jobs, batch_rows, weight))

// Ranks the known positives of a row before its known negatives (C2AE), P = σ(logits):
//   Σ_i mean over j positive, l negative of exp(-μ(P_ij - P_il)) / μ; a row without both gives 0. dlogits is written.
LACUNA_LOSS(ranking_loss, (Input logits, const LabelRows& labels, double margin, double weight, Output dlogits,
            double* value), (logits, labels, margin, weight, dlogits, value))

// Two embeddings (b, d) of the same rows that should agree and have orthonormal columns (C2AE):
//   ‖A-E‖² + λ(‖AᵀA-I‖² + ‖EᵀE-I‖²); adds to dA, dE.
LACUNA_LOSS(agreement_loss, (Input A, Input E, double orthogonal, double weight, Output dA, Output dE,
            double* value), (A, E, orthogonal, weight, dA, dE, value))

#undef LACUNA_LOSS
#endif
