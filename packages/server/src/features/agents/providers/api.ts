/** Stored work that may name a model. */
export interface StoredUse {
  /** What it is, for people. */
  readonly where: string;
  /** JSON with models under keys `model`. */
  readonly json: string;
}
