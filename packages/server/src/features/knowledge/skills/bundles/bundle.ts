import { createHash } from 'node:crypto';

/** One file of a skill, as it is vetted and as it is written. */
export interface BundleFile {
  /** Relative to the folder of the skill, with "/". */
  readonly path: string;
  readonly bytes: Buffer;
  readonly executable: boolean;
}

/** An entry of an archive or a folder that is not a plain file, or was not read completely. */
export interface OddMember {
  readonly path: string;
  readonly what: 'link' | 'special' | 'too_large' | 'too_many' | 'too_much';
}

/** The files of a skill in memory: nothing is read again between the decision and the write. */
export interface Bundle {
  readonly files: readonly BundleFile[];
  readonly odd: readonly OddMember[];
}

export const manifestName = 'SKILL.md';

/** Returns `sha256:` and the hex digest of all paths and contents, in a canonical order. */
export function digestOf(files: readonly BundleFile[]): string {
  const hash = createHash('sha256');
  for (const { path, bytes } of files.toSorted((a, b) => (a.path < b.path ? -1 : 1))) {
    hash.update(`${Buffer.byteLength(path)}:${path}:${bytes.length}:`);
    hash.update(bytes);
  }
  return `sha256:${hash.digest('hex')}`;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const magics = [
  [0x7f, 0x45, 0x4c, 0x46],
  [0xfe, 0xed, 0xfa],
  [0xce, 0xfa, 0xed, 0xfe],
  [0xcf, 0xfa, 0xed, 0xfe],
  [0xca, 0xfe, 0xba, 0xbe],
  [0x4d, 0x5a],
];

/** Returns the text of a file; undefined for a program, a file with NUL, or invalid UTF-8. */
export function textOf(bytes: Buffer): string | undefined {
  if (magics.some((magic) => magic.every((byte, index) => bytes[index] === byte)) && !looksLikeProse(bytes)) return undefined;
  if (bytes.includes(0)) return undefined;
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

/** A sentence may begin with "MZ"; a program has bytes nearby that no text has. */
function looksLikeProse(bytes: Buffer): boolean {
  return bytes.subarray(0, 512).every((byte) => byte >= 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d) && (bytes[0] ?? 0) < 0x7f;
}

/** Returns a bundle that consists of a manifest. */
export const singleFile = (manifest: string): Bundle => ({
  files: [{ path: manifestName, bytes: Buffer.from(manifest.toWellFormed()), executable: false }],
  odd: [],
});
