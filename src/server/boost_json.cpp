// Boost.JSON without its library: the one translation unit that compiles it.
#include <boost/json/src.hpp>
