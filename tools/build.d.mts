import type { Plugin } from 'esbuild';

/** Files of packages that a thread reads from its own folder. */
export const attachments: Readonly<Record<string, string>>;
/**
 * Bundles the daemon and its threads; returns the texts of the files by their names. `change` makes a plugin that replaces sources of the
 * server; what it loads goes through the function that it gets.
 */
export function bundleDaemon(change?: (named: (text: string) => string) => Plugin): Promise<ReadonlyMap<string, string>>;
/** Returns a digest of the sources of the bundle. */
export function sourceStamp(): string;
