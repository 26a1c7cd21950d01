"""Machines, their devices and the software that prepares them."""
