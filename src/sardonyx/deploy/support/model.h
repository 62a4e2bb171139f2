/* {title}
 *
{ports}
 *
 *     {name}_context *context;
 *     sardonyx_error error;
 *     if ({name}_open(&context, NULL, &error) != SARDONYX_OK) puts(error.text);
 *     {name}_run(context, dims, inputs, outputs, &error);
 *     {name}_close(context);
 *
 * A context is used by one thread at a time; any number may be open at once, and all share the weights.
 * Functions return 0 or one of the codes below. Nothing else of this library is visible.
 */
#ifndef {NAME}_H
#define {NAME}_H

{interface}
#ifndef {NAME}_API
#define {NAME}_API
#endif

#ifdef __cplusplus
extern "C" {{
#endif

/* The numbers of inputs, outputs and dynamic dimensions, and how many there are. */
enum {{
{numbers}
}};

{memory}typedef struct {name}_context {name}_context;

/* What there is to feed and to get; NULL past the last. */
{NAME}_API const sardonyx_port *{name}_input(int32_t number);
{NAME}_API const sardonyx_port *{name}_output(int32_t number);
{NAME}_API const char *{name}_dim(int32_t number);

/* Learn the dynamic dimensions from an input's shape. Begin with all of `dims` -1 and call it for every input: it
 * checks the shape, and what is known already. */
{NAME}_API int32_t {name}_bind(int32_t input, const int64_t *shape, int32_t rank, int64_t *dims, sardonyx_error *error);

/* The shape of an input or output for these dimensions: `rank` sizes. */
{NAME}_API int32_t {name}_input_shape(int32_t number, const int64_t *dims, int64_t *shape, sardonyx_error *error);
{NAME}_API int32_t {name}_output_shape(int32_t number, const int64_t *dims, int64_t *shape, sardonyx_error *error);

/* All the bytes that a context needs to run with these dimensions: as much as `options.memory` has to have. */
{NAME}_API int32_t {name}_memory_needed(const int64_t *dims, int64_t *bytes, sardonyx_error *error);

/* `options` may be NULL. */
{NAME}_API int32_t {name}_open({name}_context **context, const sardonyx_options *options, sardonyx_error *error);

/* Buffers are the caller's, and outputs overlap nothing. `dims` may be NULL where none are dynamic. */
{NAME}_API int32_t {name}_run({name}_context *context, const int64_t *dims, const sardonyx_buffer *inputs,
{indent}const sardonyx_buffer *outputs, sardonyx_error *error);

/* From any thread: the run that goes on in this context, or else its next, ends with SARDONYX_STOPPED. */
{NAME}_API void {name}_stop({name}_context *context);

{NAME}_API void {name}_close({name}_context *context);

#ifdef __cplusplus
}}
#endif

#endif
