/* The C interface of Lacuna: multi-label learning from items that are described by several feature sets ("views"),
 * with missing views and unknown labels.
 *
 *   lacuna_error *error = NULL;
 *   lacuna_data *data = NULL;
 *   lacuna_model *model = NULL;
 *   if (lacuna_data_new(rows, &data, &error) ||
 *       lacuna_data_add_dense(data, "sound", LACUNA_F32, sound, 72, 72, NULL, &error) ||
 *       lacuna_data_set_labels(data, labels, 6, NULL, &error) ||
 *       lacuna_model_new("lacuna", NULL, &model, &error) ||
 *       lacuna_model_fit(model, data, NULL, NULL, &error) ||
 *       lacuna_model_predict(model, data, scores, &error))
 *     fprintf(stderr, "%s\n", lacuna_error_message(error));
 *
 * Conventions of all functions:
 *   - Matrices are row-major. Strings are UTF-8 and NUL-terminated.
 *   - A function that can fail returns a lacuna_status, 0 for success. On failure it has no effect, unless stated
 *     otherwise, and stores a new lacuna_error in *error, unless `error` is NULL. Output handles and strings are
 *     then NULL.
 *   - The caller owns the handles, errors and strings that functions return, and frees them with lacuna_..._free,
 *     which accept NULL.
 *   - No function throws, prints, or ends the process.
 *   - The only state outside of handles is one pool of worker threads and the device, both of the whole process.
 *   - Functions may run concurrently in different threads on different handles. Functions that take a handle as
 *     const may run concurrently on the same handle; others need exclusive access.
 *   - Results depend only on data, settings and seed, not on the number of threads.
 * Later versions add functions, and members at the end of structures that begin with their size.
 */
#ifndef LACUNA_H
#define LACUNA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LACUNA_API __attribute__((visibility("default")))
#else
#define LACUNA_API
#endif

/* The version of this header. lacuna_api_version() returns that of the library. */
#define LACUNA_API_VERSION 3 /* 2: lacuna_set_device, lacuna_explain, NaN for items without any view
                                3: lacuna_model_refine, lacuna_model_recover */

LACUNA_API int lacuna_api_version(void);
LACUNA_API const char *lacuna_version(void); /* "0.2.0" */

/* ---- errors: the classes are the exit codes of the program */

typedef enum {
  LACUNA_OK = 0,
  LACUNA_FAILED = 1,        /* files that cannot be written, and internal errors */
  LACUNA_USAGE = 2,         /* an argument or a setting is invalid */
  LACUNA_DATA = 3,          /* data or a file have unexpected contents */
  LACUNA_MISMATCH = 4,      /* model and data do not match */
  LACUNA_DIVERGED = 5,      /* training produced NaN or infinity */
  LACUNA_NO_MEMORY = 12,
  LACUNA_INTERRUPTED = 130  /* stopped by a callback before anything was learned */
} lacuna_status;

typedef struct lacuna_error lacuna_error;
LACUNA_API lacuna_status lacuna_error_status(const lacuna_error *error);
LACUNA_API const char *lacuna_error_message(const lacuna_error *error); /* lives as long as the error */
LACUNA_API void lacuna_error_free(lacuna_error *error);

/* Frees strings and bytes that functions return. */
LACUNA_API void lacuna_free(void *memory);

/* Threads of the whole process; 0 = as many as are available, the default. */
LACUNA_API lacuna_status lacuna_set_threads(int count, lacuna_error **error);

/* The device of networks that are fitted or loaded from now on, in the whole process: "cpu", the default; "cuda" or
 * "cuda:1"; "auto" is the first available GPU, otherwise the CPU. LACUNA_USAGE says why a GPU cannot be used. */
LACUNA_API lacuna_status lacuna_set_device(const char *device, lacuna_error **error);

/* A setting by its name, as on the command line: {"missing-views", ".3"}. */
typedef struct {
  const char *name;
  const char *value;
} lacuna_setting;

/* ---- data sets */

typedef struct lacuna_data lacuna_data;
typedef enum { LACUNA_F32 = 1, LACUNA_F64 = 2 } lacuna_type;

LACUNA_API lacuna_status lacuna_data_new(size_t rows, lacuna_data **data, lacuna_error **error);
LACUNA_API void lacuna_data_free(lacuna_data *data);

/* Adds a view: `rows` rows of `columns` values, row i at values + i * stride (in elements, stride >= columns).
 * present: `rows` bytes, 1 = the item has the view; NULL = all. A row of NaN is missing as well; other
 * values that are not finite are LACUNA_DATA.
 * LACUNA_F32 is not copied and must not change until the data set is freed. LACUNA_F64 is converted. */
LACUNA_API lacuna_status lacuna_data_add_dense(lacuna_data *data, const char *name, lacuna_type type,
                                               const void *values, size_t columns, size_t stride,
                                               const uint8_t *present, lacuna_error **error);
/* Compressed sparse rows, not copied: row i has the columns index[start[i]] .. index[start[i + 1] - 1], ascending.
 * start has rows + 1 entries, index and value have start[rows]. */
LACUNA_API lacuna_status lacuna_data_add_csr(lacuna_data *data, const char *name, const uint64_t *start,
                                             const uint32_t *index, const float *value, size_t columns,
                                             const uint8_t *present, lacuna_error **error);
/* Column names of view `view` (from 0), copied. They must differ (LACUNA_DATA otherwise). A model that has
 * column names checks them. */
LACUNA_API lacuna_status lacuna_data_set_columns(lacuna_data *data, size_t view, const char *const *names,
                                                 lacuna_error **error);
/* labels (rows, count): 1, 0, or -1 = unknown; not copied. names: `count` of them, or NULL. */
LACUNA_API lacuna_status lacuna_data_set_labels(lacuna_data *data, const int8_t *labels, size_t count,
                                                const char *const *names, lacuna_error **error);
LACUNA_API lacuna_status lacuna_data_set_name(lacuna_data *data, const char *name, lacuna_error **error);
LACUNA_API lacuna_status lacuna_data_set_ids(lacuna_data *data, const char *const *ids, lacuna_error **error);

/* Reads any format of the program, with the same options; MATLAB files of level 7.3 and other HDF5 files only if the
 * library was built with HDF5. When writing, the format follows from the extension of the path. */
LACUNA_API lacuna_status lacuna_data_read(const char *path, const lacuna_setting *settings, size_t count,
                                          lacuna_data **data, lacuna_error **error);
LACUNA_API lacuna_status lacuna_data_write(const lacuna_data *data, const char *path, lacuna_error **error);
/* Simulated data, with the options of `lacuna data simulate`. */
LACUNA_API lacuna_status lacuna_data_simulate(const lacuna_setting *settings, size_t count,
                                              lacuna_data **data, lacuna_error **error);

/* {"name", "rows", "views": [{"name", "columns", "sparse", "stored", "column_names"}], "labels": [names],
 *  "ids": [...], "notes": [...]} */
LACUNA_API lacuna_status lacuna_data_describe(const lacuna_data *data, char **json, lacuna_error **error);
/* The parts, in place: pointers live as long as the data set and are NULL for missing parts. */
LACUNA_API lacuna_status lacuna_data_dense(const lacuna_data *data, size_t view, const float **values,
                                           size_t *stride, lacuna_error **error);
LACUNA_API lacuna_status lacuna_data_csr(const lacuna_data *data, size_t view, const uint64_t **start,
                                         const uint32_t **index, const float **value, lacuna_error **error);
LACUNA_API const uint8_t *lacuna_data_present(const lacuna_data *data); /* (rows, views); NULL = all present */
LACUNA_API const int8_t *lacuna_data_labels(const lacuna_data *data);   /* (rows, labels) */

/* ---- gaps and splits for experiments, with the options of `lacuna data mask` */

typedef struct lacuna_folds lacuna_folds;
LACUNA_API lacuna_status lacuna_folds_new(const lacuna_data *data, const lacuna_setting *settings,
                                          size_t count, lacuna_folds **folds, lacuna_error **error);
LACUNA_API lacuna_status lacuna_folds_read(const char *path, lacuna_folds **folds, lacuna_error **error);
LACUNA_API lacuna_status lacuna_folds_write(const lacuna_folds *folds, const char *path, lacuna_error **error);
LACUNA_API void lacuna_folds_free(lacuna_folds *folds);
/* {"count", "rows", "views", "labels", "train", "val", "test", "hash"}; train, val, test: numbers of rows */
LACUNA_API lacuna_status lacuna_folds_describe(const lacuna_folds *folds, char **json, lacuna_error **error);
/* Of fold `fold`: W (rows, views) 1 = present, G (rows, labels) 1 = known, order (rows): training rows, then
 * validation rows, then test rows. The pointers live as long as the folds. */
LACUNA_API lacuna_status lacuna_folds_at(const lacuna_folds *folds, size_t fold, const uint8_t **W,
                                         const uint8_t **G, const uint32_t **order, lacuna_error **error);

/* ---- models */

typedef struct lacuna_model lacuna_model;

/* method: one of lacuna_methods(), or NULL for the default or the method that has the preset. preset: NULL for the
 * method's default. */
LACUNA_API lacuna_status lacuna_model_new(const char *method, const char *preset, lacuna_model **model,
                                          lacuna_error **error);
LACUNA_API void lacuna_model_free(lacuna_model *model);
LACUNA_API lacuna_status lacuna_model_set(lacuna_model *model, const char *name, const char *value,
                                          lacuna_error **error);
/* [{"name", "type", "value", "default", "help", "low", "high", "choices"}] of all settings. */
LACUNA_API lacuna_status lacuna_model_settings(const lacuna_model *model, char **json, lacuna_error **error);
/* [{"name", "title", "source", "presets": [...], "iterative", "probabilities", "missing_views",
 *   "missing_labels", "multi_view"}] */
LACUNA_API lacuna_status lacuna_methods(char **json, lacuna_error **error);

/* One epoch (or iteration) of a running fit. Everything in it lives until the callback returns. */
typedef struct {
  size_t size;              /* of this structure */
  int64_t epoch, epochs;    /* finished epochs, and their maximum */
  int64_t member, members;  /* of an ensemble, or of the views that c2ae and glocal try; from 0 */
  double seconds;           /* of training alone */
  double rows_per_second;
  size_t losses;            /* their number */
  const char *const *loss_names;
  const double *loss_values;
  const double *validation; /* in the order of lacuna_metric_name; NULL if this epoch was not validated */
} lacuna_epoch;

typedef struct {
  size_t size;                   /* sizeof(lacuna_fit_options), set by lacuna_fit_options_init */
  uint64_t seed;                 /* 1 */
  double hold_out;               /* .15: share of the rows held out for selection, thresholds, calibration */
  const lacuna_data *validation; /* NULL; otherwise these rows are used instead of held-out ones */
  /* Called in the thread that called lacuna_model_fit. progress: after each epoch. stop: between steps, often.
   * Either may return non-zero to end the fit and keep what was learned so far. remark: a sentence for users of
   * the result. */
  int (*progress)(void *user, const lacuna_epoch *epoch);
  int (*stop)(void *user);
  void (*remark)(void *user, const char *text);
  void *user;
} lacuna_fit_options;
LACUNA_API void lacuna_fit_options_init(lacuna_fit_options *options);

/* Fits. options may be NULL. `stopped` (may be NULL) is set to 1 if a callback ended the fit early. Data from which
 * nothing can be learned are LACUNA_DATA; weaknesses of the result are reported as remarks. A fit that fails leaves
 * the model unchanged, except that after LACUNA_DIVERGED *stopped is 1 if the model has the best epoch before the
 * divergence. The settings of the model never change. */
LACUNA_API lacuna_status lacuna_model_fit(lacuna_model *model, const lacuna_data *data,
                                          const lacuna_fit_options *options, int *stopped,
                                          lacuna_error **error);

/* Labels of a fitted model; 0 before that. Views and labels: lacuna_model_describe. */
LACUNA_API size_t lacuna_model_labels(const lacuna_model *model);

/* scores (rows, labels): larger = more relevant; probabilities if the method gives them. Views are matched
 * by name and may be missing altogether. An item without any view gets NaN. */
LACUNA_API lacuna_status lacuna_model_predict(const lacuna_model *model, const lacuna_data *data,
                                              float *scores, lacuna_error **error);
/* From scores (rows, labels) to decided (rows, labels), 1 or 0, by the thresholds chosen on validation rows,
 * or by the method's own rule if there were none. A row of NaN (an item without any view) gets 0. */
LACUNA_API lacuna_status lacuna_model_decide(const lacuna_model *model, const float *scores, size_t rows,
                                             uint8_t *decided, lacuna_error **error);
/* Scores to calibrated probabilities, in place. LACUNA_MISMATCH if there were no validation rows. */
LACUNA_API lacuna_status lacuna_model_calibrate(const lacuna_model *model, float *scores, size_t rows,
                                                lacuna_error **error);

/* Uses the known labels of items to refine the scores of their others, in place, before scores are calibrated or
 * decided. known (rows, labels), labels in the order of the model: 1, 0, or -1 = unknown. Scores of known labels, and of
 * items without known labels, do not change. "label_links" of lacuna_model_describe gives the gain on validation rows;
 * with weight 0 nothing changes. LACUNA_MISMATCH if the model has not learned this. */
LACUNA_API lacuna_status lacuna_model_refine(const lacuna_model *model, const int8_t *known, float *scores,
                                             size_t rows, lacuna_error **error);

/* A new data set in which missing views are reconstructed from the present ones, in the columns of the training data;
 * present views are passed on. deviations (may be NULL): the same views with the standard deviations of reconstructed
 * values, 0 elsewhere. An item without any view cannot be recovered. LACUNA_MISMATCH if the model has no decoders, which
 * the setting keep-decoders adds. */
LACUNA_API lacuna_status lacuna_model_recover(const lacuna_model *model, const lacuna_data *data,
                                              lacuna_data **filled, lacuna_data **deviations,
                                              lacuna_error **error);

/* What each view adds to the scores of each item (Shapley values): score = base + the sum of the values. In
 * log-odds if the method gives probabilities, otherwise in its own scores. score, base (rows, labels): with all views
 * of an item, and without any; score is NaN for an item without any view. "base" of lacuna_model_describe names the
 * base: the label's frequency in training ("prior"), or, if that is not stored, the model's output without views
 * ("model"). values (views, rows, labels), views in the order of lacuna_model_describe; 0 if an item does not have the
 * view. Exact for items with up to 12 views; with more, orders are sampled. */
LACUNA_API lacuna_status lacuna_explain(const lacuna_model *model, const lacuna_data *data, double *score,
                                        double *base, double *values, lacuna_error **error);

/* {"method", "preset", "version", "fitted", "probabilities", "base", "calibrated", "parameters", "settings": {...},
 *  "views": [{"name", "columns", "column_names"}], "labels": [{"name", "threshold"}], "validation": {...},
 *  "label_links": {...}, "recovery": {...}, "notes": {...}} */
LACUNA_API lacuna_status lacuna_model_describe(const lacuna_model *model, char **json, lacuna_error **error);

/* The program's model files. The same model gives the same bytes. Nothing in a file is trusted. */
LACUNA_API lacuna_status lacuna_model_save(const lacuna_model *model, const char *path, lacuna_error **error);
LACUNA_API lacuna_status lacuna_model_load(const char *path, lacuna_model **model, lacuna_error **error);
LACUNA_API lacuna_status lacuna_model_store(const lacuna_model *model, void **bytes, size_t *size,
                                            lacuna_error **error);
LACUNA_API lacuna_status lacuna_model_restore(const void *bytes, size_t size, lacuna_model **model,
                                              lacuna_error **error);

/* ---- metrics: larger is better for each of them; unknown labels are left out */

#define LACUNA_METRICS 9
LACUNA_API const char *lacuna_metric_name(size_t metric); /* "AP", ...; NULL from LACUNA_METRICS on */
/* scores (rows, labels); truth (rows, labels): 1, 0, -1; decided (rows, labels): 1 or 0, or NULL: scores
 * above `threshold` are positive. values: LACUNA_METRICS of them. Rows whose scores are all NaN are left out. */
LACUNA_API lacuna_status lacuna_evaluate(const float *scores, const int8_t *truth, const uint8_t *decided,
                                         size_t rows, size_t labels, double threshold, double *values,
                                         lacuna_error **error);
/* Per label: values (labels, 5): positives, known, AP, AUC, F1; NaN where undefined. */
LACUNA_API lacuna_status lacuna_evaluate_labels(const float *scores, const int8_t *truth,
                                                const uint8_t *decided, size_t rows, size_t labels,
                                                double threshold, double *values, lacuna_error **error);

/* A page (HTML) about a fitted model on labelled data; title may be NULL. */
LACUNA_API lacuna_status lacuna_model_report(const lacuna_model *model, const lacuna_data *data,
                                             const char *title, char **html, lacuna_error **error);

#ifdef __cplusplus
}
#endif

#endif /* LACUNA_H */
