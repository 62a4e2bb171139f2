// Says which digits a file of images shows: 64 numbers (float32) an image, 8 rows of 8.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "digits.hpp"

namespace {

constexpr std::size_t pixels = 64, classes = 10;

std::vector<float> read_images(const char *path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(std::string("cannot be opened: ") + path);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    std::vector<float> images(bytes.size() / sizeof(float));
    std::copy_n(bytes.begin(), images.size() * sizeof(float), reinterpret_cast<char *>(images.data()));
    return images;
}

}  // namespace

int main(int count, char **arguments) {
    try {
        if (count != 2) throw std::runtime_error("give a file of images, 256 bytes each");
        std::vector<float> images = read_images(arguments[1]);
        digits::Model model(2);
        const auto logits = model.run(images, static_cast<std::int64_t>(images.size() / pixels));
        for (auto row = logits.begin(); row != logits.end(); row += classes)
            std::printf("%td\n", std::max_element(row, row + classes) - row);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "classify: %s\n", error.what());
        return 1;
    }
    return 0;
}
