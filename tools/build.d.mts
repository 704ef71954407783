import type { Plugin } from 'esbuild';

/** Modules that run in separate threads, by the name under which their code looks for them. */
export const threads: Readonly<Record<string, string>>;
/** Files of packages that a thread reads from its own folder. */
export const attachments: Readonly<Record<string, string>>;
export const plainBuiltins: Plugin;
export const noNativeParts: Plugin;
/** Returns a digest of the sources of the bundle. */
export function sourceStamp(): string;
