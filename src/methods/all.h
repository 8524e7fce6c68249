// The makers of every method, one per file of this module.
#pragma once

#include <memory>

#include "methods/method.h"

namespace lacuna {

std::unique_ptr<Method> make_prior();
std::unique_ptr<Method> make_linear();
std::unique_ptr<Method> make_mlknn();
std::unique_ptr<Method> make_glocal();
std::unique_ptr<Method> make_cdmm();
std::unique_ptr<Method> make_dm2l();
std::unique_ptr<Method> make_lvsl();
std::unique_ptr<Method> make_imvwl();
std::unique_ptr<Method> make_naim3l();
std::unique_ptr<Method> make_lacuna();
std::unique_ptr<Method> make_mtd();
std::unique_ptr<Method> make_dicnet();
std::unique_ptr<Method> make_c2ae();

}  // namespace lacuna
