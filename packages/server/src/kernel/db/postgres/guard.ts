import { AppError } from '../../app-error.ts';

/** Proves that this daemon may write: the boot that holds the lease of the database, and how often the lease has changed by then. */
export interface Guard {
  readonly bootId: string;
  readonly fence: number;
}

/**
 * Returns the statement that each writing transaction begins with. It locks the row that a take-over changes: one that comes later waits
 * for the commit, and after one that came earlier it finds nothing.
 */
export function guardStatement({ bootId, fence }: Guard): string {
  if (!/^[\w-]+$/.test(bootId) || !Number.isSafeInteger(fence)) throw new TypeError('not a guard');
  return `SELECT 1 FROM active_node WHERE id = 1 AND boot_id = '${bootId}' AND fence = ${fence} FOR SHARE`;
}

/** A write was refused, because another daemon may write instead of this one. */
export class FencedOut extends AppError {
  constructor() {
    super('unavailable', 'Another node took over: this one stores nothing more', { retryAfterMs: 1_000 });
  }
}
