import { readFile } from 'node:fs/promises';
import type { Random } from './random.ts';

/** A secret that occurs only where it was put. */
export interface Canary {
  /** The field where it was put, for reports. */
  readonly place: string;
  readonly value: string;
}

/** Creates random secrets; `prefix` decides whether they look like keys of a known vendor or like nothing. */
export function createCanaries(random: Random) {
  const all: Canary[] = [];
  const alphabet = 'abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789';
  const known = (place: string, value: string): string => {
    all.push({ place, value });
    return value;
  };
  return {
    all: all as readonly Canary[],
    make: (place: string, prefix = ''): string =>
      known(place, prefix + Array.from({ length: 40 }, () => alphabet[random.int(alphabet.length)]).join('')),
    /** Registers a secret that was created elsewhere. */
    known,
  };
}
export type Canaries = ReturnType<typeof createCanaries>;

/** Forms in which a secret may appear: plain, inside a URL, and in base64 at each of its three alignments. */
function formsOf(value: string): readonly Buffer[] {
  const encoded = [0, 1, 2].map((skip) => Buffer.from(value.slice(skip)).toString('base64').replace(/.=*$/, '').slice(0, -1));
  return [value, encodeURIComponent(value), value.slice(0, Math.ceil(value.length * 0.75)), ...encoded].map((form) => Buffer.from(form));
}

/** Searches bytes for canaries and reports where those that it finds were put. */
export function createScanner(canaries: () => readonly Canary[]) {
  const found: string[] = [];
  let bytes = 0;
  return {
    found: found as readonly string[],
    scanned: () => bytes,
    /** `said`: a value that may appear there. */
    scan(surface: string, text: string | Buffer, said?: string): void {
      const haystack = typeof text === 'string' ? Buffer.from(text) : text;
      bytes += haystack.length;
      for (const { place, value } of canaries())
        if (value !== said && formsOf(value).some((form) => haystack.includes(form))) found.push(`${surface} holds the secret of ${place}`);
    },
    async scanFile(surface: string, file: string): Promise<void> {
      this.scan(surface, await readFile(file));
    },
  };
}
export type Scanner = ReturnType<typeof createScanner>;
