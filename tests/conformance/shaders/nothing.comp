#version 460
// "nothing": no bindings, no constants, no effect.
#include "tests/conformance/shaders/views.glsl"

void main() {}
