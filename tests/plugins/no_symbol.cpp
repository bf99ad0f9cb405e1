// A shared library that is no plugin.
__attribute__((visibility("default"))) int not_a_plugin() { return 1; }
