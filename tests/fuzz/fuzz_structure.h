// Mutations that keep the outermost structure of a file whole: otherwise nearly every change of a compressed or counted
// part is refused before anything behind it is read.
//
//   .csv.gz                      the text, compressed again
//   .safetensors                 the JSON header, and its length before it
//   .npz, folds-npz              the bytes of one member, stored, with the sum and the sizes that belong to them
//   .mat, folds-mat              one compressed element, inflated and deflated again
//   files                        one of the files, or the line of options before them
//
// Other forms have no such structure (text), or none that can be rebuilt here (HDF5): their bytes are changed as they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lacuna {

using Mutate = std::size_t (*)(std::uint8_t* data, std::size_t size, std::size_t most);

// Changes `data` in place, at most `most` bytes, and returns the new size.
std::size_t mutate_inside(const std::string& form, std::uint8_t* data, std::size_t size, std::size_t most,
                          unsigned choice, Mutate mutate);

}  // namespace lacuna
