import { GrammyError } from 'grammy';
import { RequestFailed } from '../http.ts';
import type { Download } from '../port.ts';
import { type Access, type BotApi, rootOf } from './api.ts';

/** The Bot API serves no larger files. */
const maxBytes = 20_000_000;
/** Time for the whole file. */
const downloadMs = 300_000;
const tooLarge: Download = { is: 'gone', text: `The file is larger than ${maxBytes / 1_000_000} MB, which bots cannot download` };

/** Opens a file by the id that a message had. Addresses of files contain the token: no error has one. */
export async function download(access: Access, api: BotApi, ref: string, signal: AbortSignal): Promise<Download> {
  if (!/^[\w-]{1,1024}$/.test(ref)) return { is: 'gone', text: 'It is not the id of a file of Telegram' };
  try {
    const { file_path: path, file_size: bytes } = await api.getFile({ file_id: ref }, signal);
    if (bytes !== undefined && bytes > maxBytes) return tooLarge;
    const address = path === undefined ? undefined : addressOf(path);
    if (address === undefined)
      return { is: 'unavailable', text: 'The Bot API server names no address of the file: one that runs with --local serves no files' };
    return await open(access, address, signal);
  } catch (error) {
    if (error instanceof RequestFailed) return { is: 'unavailable', text: error.message };
    if (!(error instanceof GrammyError)) return { is: 'unavailable', text: 'The download failed' };
    const { error_code: code, description } = error;
    if (/file is too big/i.test(description)) return tooLarge;
    return code === 400 ? { is: 'gone', text: description } : { is: 'unavailable', text: description };
  }
}

/** Returns the part of an address for a path; undefined for one that leaves its folder, or is a path on the server's disk. */
function addressOf(path: string): string | undefined {
  const names = path.split('/');
  if (names.some((name) => name === '' || name === '.' || name === '..')) return undefined;
  return names.map(encodeURIComponent).join('/');
}

async function open({ token, apiUrl, clock }: Access, address: string, signal: AbortSignal): Promise<Download> {
  const late = new AbortController();
  const cancel = clock.after(downloadMs, () => late.abort());
  let response: Response;
  try {
    response = await fetch(`${rootOf(apiUrl)}/file/bot${token}/${address}`, { redirect: 'manual', signal: AbortSignal.any([signal, late.signal]) });
  } catch {
    cancel();
    return { is: 'unavailable', text: 'The connection failed' };
  }
  if (response.ok && response.body !== null) return { is: 'opened', stream: bytesOf(response.body, cancel) };
  cancel();
  await response.body?.cancel();
  const text = `The Bot API server answered HTTP ${response.status}`;
  return response.status === 404 ? { is: 'gone', text } : { is: 'unavailable', text };
}

async function* bytesOf(body: AsyncIterable<Uint8Array>, cancel: () => void): AsyncGenerator<Uint8Array> {
  let size = 0;
  try {
    for await (const part of body) {
      size += part.byteLength;
      if (size > maxBytes) throw new RequestFailed(`The file is larger than ${maxBytes} bytes`, true, undefined);
      yield part;
    }
  } catch (error) {
    throw error instanceof RequestFailed ? error : new RequestFailed('The connection ended before the file was complete', true, undefined);
  } finally {
    cancel();
  }
}
