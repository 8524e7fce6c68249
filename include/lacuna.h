/* Lacuna in plain C: items described by several feature sets ("views"), of which some are missing, with
 * labels that are known in part; methods that learn from them; predictions.
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
 * Said once for all functions:
 *   - Matrices are row-major. Text is UTF-8 and ends with NUL.
 *   - A function that can fail returns a lacuna_status, 0 where all is well. Otherwise it has done nothing,
 *     except where it says so, and puts a new lacuna_error into *error, unless `error` is NULL. An output
 *     that is a handle or a text is then NULL.
 *   - Handles, errors and texts that a function gives belong to the caller: lacuna_..._free, which take NULL.
 *   - Nothing is thrown, nothing is printed, nothing ends the process.
 *   - There is no state outside of handles but one pool of worker threads and the device, of the whole process.
 *   - Any functions may run at the same time in different threads on different handles. Functions that take
 *     a handle as const may run at the same time on the same handle; others need it for themselves.
 *   - Results depend on data, settings and seed alone, not on the number of threads.
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

/* Of this header. A program may ask the library for its own. */
#define LACUNA_API_VERSION 3 /* 2: lacuna_set_device, lacuna_explain, NaN for items without any view
                                3: lacuna_model_refine, lacuna_model_recover */

LACUNA_API int lacuna_api_version(void);
LACUNA_API const char *lacuna_version(void); /* "0.2.0" */

/* ---- errors: the classes are the exit codes of the program */

typedef enum {
  LACUNA_OK = 0,
  LACUNA_FAILED = 1,        /* files that cannot be written, and mistakes of ours */
  LACUNA_USAGE = 2,         /* an argument or a setting is wrong */
  LACUNA_DATA = 3,          /* data or a file do not hold what they should */
  LACUNA_MISMATCH = 4,      /* model and data do not fit together */
  LACUNA_DIVERGED = 5,      /* training produced NaN or infinity */
  LACUNA_NO_MEMORY = 12,
  LACUNA_INTERRUPTED = 130  /* stopped by a callback before anything was learned */
} lacuna_status;

typedef struct lacuna_error lacuna_error;
LACUNA_API lacuna_status lacuna_error_status(const lacuna_error *error);
LACUNA_API const char *lacuna_error_message(const lacuna_error *error); /* lives as long as the error */
LACUNA_API void lacuna_error_free(lacuna_error *error);

/* Texts and bytes that functions give. */
LACUNA_API void lacuna_free(void *memory);

/* Threads of the whole process; 0 = as many as it may use, which is also where it begins. */
LACUNA_API lacuna_status lacuna_set_threads(int count, lacuna_error **error);

/* Where networks compute that are fitted or loaded from now on, in the whole process: "cpu", where it begins;
 * "cuda" or "cuda:1"; "auto" is the first GPU that can be used, otherwise the CPU. LACUNA_USAGE says why a GPU
 * cannot be used. */
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
 * present: `rows` bytes, 1 where the item has the view; NULL = all. A row of NaN alone is missing as well;
 * other values that are not finite are LACUNA_DATA.
 * LACUNA_F32 is not copied: it must stay as it is until the data set is freed. LACUNA_F64 is converted. */
LACUNA_API lacuna_status lacuna_data_add_dense(lacuna_data *data, const char *name, lacuna_type type,
                                               const void *values, size_t columns, size_t stride,
                                               const uint8_t *present, lacuna_error **error);
/* Compressed sparse rows, not copied: row i holds columns index[start[i]] .. index[start[i + 1] - 1], rising.
 * start has rows + 1 entries, index and value have start[rows]. */
LACUNA_API lacuna_status lacuna_data_add_csr(lacuna_data *data, const char *name, const uint64_t *start,
                                             const uint32_t *index, const float *value, size_t columns,
                                             const uint8_t *present, lacuna_error **error);
/* Names of the columns of view `view` (from 0), copied, each once (LACUNA_DATA otherwise). A
 * model that knows them checks them. */
LACUNA_API lacuna_status lacuna_data_set_columns(lacuna_data *data, size_t view, const char *const *names,
                                                 lacuna_error **error);
/* labels (rows, count): 1, 0, or -1 = unknown; not copied. names: `count` of them, or NULL. */
LACUNA_API lacuna_status lacuna_data_set_labels(lacuna_data *data, const int8_t *labels, size_t count,
                                                const char *const *names, lacuna_error **error);
LACUNA_API lacuna_status lacuna_data_set_name(lacuna_data *data, const char *name, lacuna_error **error);
LACUNA_API lacuna_status lacuna_data_set_ids(lacuna_data *data, const char *const *ids, lacuna_error **error);

/* Any form that the program reads, by the same options; MATLAB files of level 7.3 and other HDF5 files only
 * where the library was built with them. Data sets are written by the path's ending. */
LACUNA_API lacuna_status lacuna_data_read(const char *path, const lacuna_setting *settings, size_t count,
                                          lacuna_data **data, lacuna_error **error);
LACUNA_API lacuna_status lacuna_data_write(const lacuna_data *data, const char *path, lacuna_error **error);
/* Data of a known model, by the options of `lacuna data simulate`. */
LACUNA_API lacuna_status lacuna_data_simulate(const lacuna_setting *settings, size_t count,
                                              lacuna_data **data, lacuna_error **error);

/* {"name", "rows", "views": [{"name", "columns", "sparse", "stored", "column_names"}], "labels": [names],
 *  "ids": [...], "notes": [...]} */
LACUNA_API lacuna_status lacuna_data_describe(const lacuna_data *data, char **json, lacuna_error **error);
/* The parts, in place: pointers live as long as the data set and are NULL where there is no such part. */
LACUNA_API lacuna_status lacuna_data_dense(const lacuna_data *data, size_t view, const float **values,
                                           size_t *stride, lacuna_error **error);
LACUNA_API lacuna_status lacuna_data_csr(const lacuna_data *data, size_t view, const uint64_t **start,
                                         const uint32_t **index, const float **value, lacuna_error **error);
LACUNA_API const uint8_t *lacuna_data_present(const lacuna_data *data); /* (rows, views); NULL = all present */
LACUNA_API const int8_t *lacuna_data_labels(const lacuna_data *data);   /* (rows, labels) */

/* ---- gaps and splits for experiments, by the options of `lacuna data mask` */

typedef struct lacuna_folds lacuna_folds;
LACUNA_API lacuna_status lacuna_folds_new(const lacuna_data *data, const lacuna_setting *settings,
                                          size_t count, lacuna_folds **folds, lacuna_error **error);
LACUNA_API lacuna_status lacuna_folds_read(const char *path, lacuna_folds **folds, lacuna_error **error);
LACUNA_API lacuna_status lacuna_folds_write(const lacuna_folds *folds, const char *path, lacuna_error **error);
LACUNA_API void lacuna_folds_free(lacuna_folds *folds);
/* {"count", "rows", "views", "labels", "train", "val", "test", "hash"}; train, val, test: numbers of rows */
LACUNA_API lacuna_status lacuna_folds_describe(const lacuna_folds *folds, char **json, lacuna_error **error);
/* Of fold `fold`: W (rows, views) 1 = present, G (rows, labels) 1 = known, order (rows): the training rows
 * first, then those for validation, then those for tests. The pointers live as long as the folds. */
LACUNA_API lacuna_status lacuna_folds_at(const lacuna_folds *folds, size_t fold, const uint8_t **W,
                                         const uint8_t **G, const uint32_t **order, lacuna_error **error);

/* ---- models */

typedef struct lacuna_model lacuna_model;

/* method: one of lacuna_methods(), or NULL: the default, or the one that has the preset. preset: NULL for that of the
 * method. */
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
  int64_t epoch, epochs;    /* done, and of how many at most */
  int64_t member, members;  /* of an ensemble, from 0 */
  double seconds;           /* of training alone */
  double rows_per_second;
  size_t losses;            /* their number */
  const char *const *loss_names;
  const double *loss_values;
  const double *validation; /* in the order of lacuna_metric_name; NULL where this epoch was not validated */
} lacuna_epoch;

typedef struct {
  size_t size;                   /* sizeof(lacuna_fit_options), set by lacuna_fit_options_init */
  uint64_t seed;                 /* 1 */
  double hold_out;               /* .15: share of the rows held out for selection, thresholds, calibration */
  const lacuna_data *validation; /* NULL; otherwise these rows are used for that, and none are held out */
  /* Called in the thread that called lacuna_model_fit. progress: after each epoch. stop: between steps, often.
   * Either may return non-zero to end the fit with what it has learned so far. remark: a sentence that whoever
   * uses the result should know. */
  int (*progress)(void *user, const lacuna_epoch *epoch);
  int (*stop)(void *user);
  void (*remark)(void *user, const char *text);
  void *user;
} lacuna_fit_options;
LACUNA_API void lacuna_fit_options_init(lacuna_fit_options *options);

/* Learns. options may be NULL. `stopped` (may be NULL) is set to 1 where a callback ended the fit early.
 * Data from which nothing can be learned are LACUNA_DATA; what will be weak about the result is remarked.
 * A fit that fails leaves the model as it was, with two exceptions: after LACUNA_DIVERGED *stopped is 1 where
 * the best epoch before that is in place, and the settings of the model are never changed. */
LACUNA_API lacuna_status lacuna_model_fit(lacuna_model *model, const lacuna_data *data,
                                          const lacuna_fit_options *options, int *stopped,
                                          lacuna_error **error);

/* Labels of a fitted model; 0 before that. Views and labels: lacuna_model_describe. */
LACUNA_API size_t lacuna_model_labels(const lacuna_model *model);

/* scores (rows, labels): larger = more relevant; probabilities where the method gives them. Views are matched
 * by name and may be missing altogether. An item without any view gets NaN. */
LACUNA_API lacuna_status lacuna_model_predict(const lacuna_model *model, const lacuna_data *data,
                                              float *scores, lacuna_error **error);
/* From scores (rows, labels) to decided (rows, labels), 1 or 0, by the thresholds chosen on validation rows,
 * or as the method itself decides where there were none. A row of NaN (an item without any view) gets 0. */
LACUNA_API lacuna_status lacuna_model_decide(const lacuna_model *model, const float *scores, size_t rows,
                                             uint8_t *decided, lacuna_error **error);
/* Scores to calibrated probabilities, in place. LACUNA_MISMATCH where there were no validation rows. */
LACUNA_API lacuna_status lacuna_model_calibrate(const lacuna_model *model, float *scores, size_t rows,
                                                lacuna_error **error);

/* What the labels that are known of an item say about its others: moves scores of lacuna_model_predict in place, before
 * they are calibrated or decided. known (rows, labels), labels in the order of the model: 1, 0, or -1 = unknown. Scores
 * of known labels, and of items of which none is known, stay as they are. "label_links" of lacuna_model_describe says
 * how much was gained on validation rows; with weight 0 nothing moves. LACUNA_MISMATCH where the model has not learned
 * it. */
LACUNA_API lacuna_status lacuna_model_refine(const lacuna_model *model, const int8_t *known, float *scores,
                                             size_t rows, lacuna_error **error);

/* A new data set in which the views that items lack are filled in, from the views they have, in the columns of the
 * training data; what is there is passed on. deviations (may be NULL): the same views, standard deviations of what was
 * filled in, 0 elsewhere. An item without any view stays without. LACUNA_MISMATCH where the model keeps no decoders:
 * they are learned where the setting keep-decoders is true. */
LACUNA_API lacuna_status lacuna_model_recover(const lacuna_model *model, const lacuna_data *data,
                                              lacuna_data **filled, lacuna_data **deviations,
                                              lacuna_error **error);

/* What each view adds to the scores of each item (Shapley values): score = base + the sum of the values. In
 * log-odds where the method gives probabilities, otherwise in its own scores. score, base (rows, labels): with all
 * views that an item has, and before any; score is NaN for an item without any. "base" of lacuna_model_describe says
 * what the base is: the label's share in training ("prior"), or, where that is not to be had, the model's output
 * without views ("model"). values (views, rows, labels), views
 * in the order of lacuna_model_describe; 0 where an item does not have the view. Exact for items with up to 12
 * views; of more, orders are drawn. */
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

/* ---- metrics: higher is better for every one; unknown labels are left out */

#define LACUNA_METRICS 9
LACUNA_API const char *lacuna_metric_name(size_t metric); /* "AP", ...; NULL from LACUNA_METRICS on */
/* scores (rows, labels); truth (rows, labels): 1, 0, -1; decided (rows, labels): 1 or 0, or NULL: a score
 * above `threshold` is a yes. values: LACUNA_METRICS of them. Rows whose scores are all NaN are left out. */
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
