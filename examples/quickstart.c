/* Learns from two views with gaps and partly known labels, saves the model, loads it and tags an item.
 *   cc -std=c99 -Wall quickstart.c $(pkg-config --cflags --libs lacuna) -o quickstart */
#include <lacuna.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 200, SOUND = 4, IMAGE = 3, LABELS = 2 };

static float sound[ROWS][SOUND], image[ROWS][IMAGE], scores[ROWS][LABELS];
static int8_t labels[ROWS][LABELS];
static uint8_t decided[ROWS][LABELS];

static void check(lacuna_status status, lacuna_error *error) {
  if (status == LACUNA_OK) return;
  fprintf(stderr, "%s\n", lacuna_error_message(error));
  lacuna_error_free(error);
  exit((int)status);
}

/* Every third item has no sound, every fifth label is unknown. */
static void draw(void) {
  unsigned state = 1;
  for (int i = 0; i < ROWS; ++i) {
    for (int j = 0; j < LABELS; ++j) {
      state = state * 1664525u + 1013904223u;
      labels[i][j] = (int8_t)(state >> 31);
    }
    for (int j = 0; j < SOUND; ++j) sound[i][j] = i % 3 == 0 ? NAN : (float)(labels[i][0] * (j + 1)) + .01f * (float)(i % 7);
    for (int j = 0; j < IMAGE; ++j) image[i][j] = (float)(labels[i][1] - j) + .01f * (float)(i % 5);
    if (i % 5 == 0) labels[i][0] = -1;
  }
}

static int show(void *user, const lacuna_epoch *epoch) {
  (void)user;
  if (epoch->epoch % 10 == 0)
    printf("epoch %d of %d: AP %.2f\n", (int)epoch->epoch, (int)epoch->epochs, epoch->validation ? epoch->validation[0] : 0);
  return 0; /* a non-zero value would end the fit */
}

int main(void) {
  const char *names[LABELS] = {"loud", "bright"};
  lacuna_error *error = NULL;
  lacuna_data *data = NULL;
  lacuna_model *model = NULL, *loaded = NULL;
  lacuna_fit_options options;
  draw();

  check(lacuna_data_new(ROWS, &data, &error), error);
  check(lacuna_data_add_dense(data, "sound", LACUNA_F32, sound, SOUND, SOUND, NULL, &error), error);
  check(lacuna_data_add_dense(data, "image", LACUNA_F32, image, IMAGE, IMAGE, NULL, &error), error);
  check(lacuna_data_set_labels(data, &labels[0][0], LABELS, names, &error), error);

  check(lacuna_model_new(NULL, NULL, &model, &error), error);
  check(lacuna_model_set(model, "epochs", "20", &error), error);
  check(lacuna_model_set(model, "members", "1", &error), error);
  lacuna_fit_options_init(&options);
  options.progress = show;
  check(lacuna_model_fit(model, data, &options, NULL, &error), error);
  check(lacuna_model_save(model, "quickstart.safetensors", &error), error);

  check(lacuna_model_load("quickstart.safetensors", &loaded, &error), error);
  check(lacuna_model_predict(loaded, data, &scores[0][0], &error), error);
  check(lacuna_model_decide(loaded, &scores[0][0], ROWS, &decided[0][0], &error), error);
  for (int j = 0; j < LABELS; ++j)
    printf("item 1 is %s%s (%.2f)\n", decided[1][j] ? "" : "not ", names[j], scores[1][j]);

  /* What is wrong is said, and nothing is lost by it. */
  if (lacuna_model_set(model, "epoch", "20", &error) != LACUNA_USAGE) return 1;
  printf("%s\n", lacuna_error_message(error));
  lacuna_error_free(error);

  lacuna_model_free(loaded);
  lacuna_model_free(model);
  lacuna_data_free(data);
  return 0;
}
