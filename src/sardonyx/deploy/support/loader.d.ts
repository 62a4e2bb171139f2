
export interface Inputs {
/*INPUTS*/}

export interface Outputs {
/*OUTPUTS*/}

/** Sizes of the dynamic dimensions. */
export interface Dims {
/*DIMS*/}

/** Elements in C order, and how many there are along each axis. */
export interface Shaped {
  readonly shape: readonly number[];
}

export interface Port {
  readonly name: string;
  readonly type: string;
  readonly shape: readonly (number | string)[];
}

/** What the model refused, in words. */
export declare class ModelError extends Error {
  readonly code:
    | "STOPPED" | "NO_MEMORY" | "BAD_VALUE" | "BAD_SHAPE" | "BAD_ARGUMENT" | "BAD_WEIGHTS" | "BAD_CODE" | "NOT_FOUND";
}

export interface Model {
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  readonly dims: readonly string[];

  /** Run once. Sizes of dynamic dimensions are `dims`, or else follow from the lengths of the arrays. */
  run(inputs: Inputs, dims?: Partial<Dims>): Outputs;

  /** The bytes that the model works in for these sizes, without weights, inputs and outputs. */
  memoryNeeded(dims?: Partial<Dims>): number;

  /** What is not as it was built: files of other bytes, outputs of other answers. An empty list is good. */
  selfTest(question?: string | URL | ArrayBuffer | ArrayBufferView): Promise<string[]>;
}

/** Load the model: from beside this file, or from a URL or bytes of your own. */
export declare function load(
  source?: string | URL | ArrayBuffer | ArrayBufferView,
  weights?: string | URL | ArrayBuffer | ArrayBufferView,
): Promise<Model>;
