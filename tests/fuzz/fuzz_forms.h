// Untrusted bytes for every reader: the fuzz targets and the replay of their corpora call the same function.
// A reader gives a sound value or throws Error; anything else (a crash, another exception, an unsound data
// set) is a failure.
#pragma once

#include <span>
#include <string>

namespace lacuna {

// Lays the bytes into `folder` as a file of the form and reads it. True if the reader took them. `folder`
// must exist; the same folder serves many calls. A form is the name of a folder in corpus/: what is not mentioned in
// fuzz_forms.cc is the ending of a file. With LACUNA_FUZZ_TELL in the environment, what readers refuse is told on the
// standard error.
bool fuzz_form(const std::string& form, std::span<const unsigned char> bytes, const std::string& folder);

}  // namespace lacuna
