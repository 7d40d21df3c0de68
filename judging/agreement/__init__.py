"""How far people and judges agree: pure functions, frames in, frames out; import the module that you need."""
