/** Result of the full form of a harness for the report. */
export interface Proof {
  readonly promise: string;
  readonly figure: string;
  /** Findings of the same harness in the broken build. */
  readonly caught: string;
  readonly good: boolean;
}

export interface ProofOptions {
  readonly seed: number;
  readonly progress: (line: string) => void;
}

/** Full forms by id, in the order of the report. */
export type Proofs = Readonly<Record<string, () => Promise<Proof>>>;

/** Prints the findings of a harness, each in one line. */
export function printFindings(lines: readonly string[]): void {
  for (const line of lines) console.error(`  ${line}`);
}

/** `a 1, b 2` */
export const counts = (of: Readonly<Record<string, number>>): string =>
  Object.entries(of)
    .map(([kind, count]) => `${kind} ${count}`)
    .join(', ');

export const total = (of: Readonly<Record<string, number>>): number => Object.values(of).reduce((sum, count) => sum + count, 0);
