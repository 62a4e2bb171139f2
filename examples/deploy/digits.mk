# What the programs around the digit classifier have in common: the model, its test images, and how they are run.
# Needs: pip install sardonyx.

DATA ?= ../../../src/sardonyx/data
PYTHON ?= python3
IMAGES ?= build/images.raw

run: build/classify $(IMAGES)
	build/classify $(IMAGES)

build/libdigits.a: $(DATA)/digits.onnx
	$(PYTHON) -m sardonyx build $< --emit a --name digits -o build

build/images.raw: $(DATA)/digits.npz
	mkdir -p build
	$(PYTHON) -c "import numpy; numpy.load('$<')['images'].tofile('$@')"

clean:
	rm -rf build

.PHONY: run clean
