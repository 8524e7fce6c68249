// lacuna serve: models -> answers over HTTP.
#include "serve/server.h"

#include "base/error.h"
#include "cli/verbs.h"

namespace lacuna::cli {

int serve(const Arguments& arguments) {
  lacuna::serve::ServerOptions server;
  Options options;
  server.declare(options);
  for (const std::string& word : arguments)
    if (word == "--port" || word.starts_with("--port="))
      fail(Exit::usage, "lacuna serve has no option '{}'; --listen HOST:PORT says where to listen",
           word.substr(0, word.find('=')));
  parse_or_help(
      options, arguments, "serve",
      "Serves predictions over HTTP: the Open Inference Protocol v2 at /v2, tags for items at /v1/suggest, a "
      "page to try it at /, counters at /metrics. SIGTERM shuts it down in order.",
      "  lacuna serve photos.safetensors\n"
      "  lacuna serve photos=best.safetensors songs.safetensors --listen 127.0.0.1:8080\n"
      "  lacuna serve photos.safetensors --listen 0.0.0.0:8080 --token-file tokens\n");
  lacuna::serve::serve(server);
  return 0;
}

}  // namespace lacuna::cli
