// A model of `sardonyx build` as a C++ class: opened by its constructor, closed by its destructor, errors as exceptions.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "digits.h"

namespace digits {

/// What the model refused: `what()` is for people, `code()` one of SARDONYX_*.
class Error : public std::runtime_error {
public:
    explicit Error(const sardonyx_error &error) : std::runtime_error(error.text), code_(error.code) {}
    [[nodiscard]] std::int32_t code() const noexcept { return code_; }

private:
    std::int32_t code_;
};

/// One thread at a time uses it. It is moved, never copied; models that are open at once share their weights.
class Model {
public:
    explicit Model(int threads = 1) {
        sardonyx_options options{};
        options.threads = threads;
        digits_context *made = nullptr;
        sardonyx_error error;
        check(digits_open(&made, &options, &error), error);
        context_.reset(made);
    }

    /// `images` has `batch` × 1 × 8 × 8 numbers; the answer has `batch` × 10.
    std::vector<float> run(std::vector<float> &images, std::int64_t batch) {
        const std::array<std::int64_t, DIGITS_DIMS> dims{batch};
        std::vector<float> logits(static_cast<std::size_t>(elements(dims.data())));
        const sardonyx_buffer inputs[]{buffer(images)};
        const sardonyx_buffer outputs[]{buffer(logits)};
        sardonyx_error error;
        check(digits_run(context_.get(), dims.data(), inputs, outputs, &error), error);
        return logits;
    }

private:
    struct Close {
        void operator()(digits_context *context) const noexcept { digits_close(context); }
    };

    static void check(std::int32_t code, const sardonyx_error &error) {
        if (code != SARDONYX_OK) throw Error(error);
    }

    static std::int64_t elements(const std::int64_t *dims) {
        std::array<std::int64_t, 2> shape{};
        sardonyx_error error;
        check(digits_output_shape(DIGITS_OUTPUT_LOGITS, dims, shape.data(), &error), error);
        return shape[0] * shape[1];
    }

    static sardonyx_buffer buffer(std::vector<float> &values) {
        return {values.data(), static_cast<std::int64_t>(values.size() * sizeof(float))};
    }

    std::unique_ptr<digits_context, Close> context_;
};

}  // namespace digits
