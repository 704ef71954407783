import { openAsBlob } from 'node:fs';
import { unreadable } from '../failure.ts';

/** Opens a file to upload it. */
export async function openFile(path: string): Promise<Blob> {
  try {
    return await openAsBlob(path);
  } catch (error) {
    throw unreadable(path, error instanceof Error ? error : new Error(String(error)));
  }
}
