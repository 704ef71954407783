import * as z from 'zod';
import { parseJson } from '../../../../kernel/json.ts';
import { createSeal as createTextSeal } from '../../../../kernel/seal.ts';

const Headers = z.record(z.string(), z.string());

/** Encrypts stored headers of servers, bound to the server's name. */
export interface Seal {
  close(name: string, headers: Readonly<Record<string, string>>): string;
  /** Returns undefined for headers sealed under another key or name. */
  open(name: string, sealed: string): Readonly<Record<string, string>> | undefined;
}

export function createSeal(key: Buffer): Seal {
  const texts = createTextSeal(key);
  return {
    close: (name, headers) => texts.close(name, JSON.stringify(headers)),
    open(name, sealed) {
      const text = texts.open(name, sealed);
      return text === undefined ? undefined : Headers.safeParse(parseJson(text)).data;
    },
  };
}
