// What every test shader sees of its views: the bound range begins up to `skip` bytes before the view and ends with it.
#define WORKGROUP 64
layout(local_size_x = WORKGROUP) in;

// The number of 32-bit elements of a view, from the length of what is bound.
uint Count(uint bound_elements, uint skip_bytes) { return bound_elements - skip_bytes / 4u; }
