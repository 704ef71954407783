import * as z from 'zod';
import type { Download, WireClock } from '../port.ts';
import { refusalText, type SlackClient } from './client.ts';
import { isTrustedHost } from './hosts.ts';

/** Time for the head of the answer, and for each next chunk. */
const idleMs = 30_000;

const FileInfo = z.object({
  file: z.object({
    url_private: z.string().nullish(),
    url_private_download: z.string().nullish(),
    mimetype: z.string().nullish(),
    size: z.number().nullish(),
  }),
});

export interface DownloadDeps {
  readonly client: SlackClient;
  readonly clock: WireClock;
  readonly apiUrl: string;
  readonly botToken: string;
  readonly maxBytes: number;
}

/** Opens a file of a message by its id. The bot token goes to hosts of Slack only. */
export async function openFile({ client, clock, apiUrl, botToken, maxBytes }: DownloadDeps, ref: string, signal: AbortSignal): Promise<Download> {
  if (!/^F[A-Z0-9]{1,31}$/.test(ref)) return { is: 'gone', text: 'Not the id of a file of Slack' };
  const answer = await client.call('files.info', { file: ref }, signal);
  if (answer.is === 'refused') return /not_found|deleted/.test(answer.error) ? gone : { is: 'unavailable', text: refusalText(answer.error) };
  if (answer.is !== 'ok') return { is: 'unavailable', text: answer.is === 'limited' ? 'Slack limits the rate of calls' : answer.text };
  const info = FileInfo.safeParse(answer.data);
  if (!info.success) return { is: 'unavailable', text: 'The answer does not describe a file' };
  const { url_private_download: direct, url_private: shown, mimetype, size } = info.data.file;
  const url = direct ?? shown;
  if (url == null || url === '') return gone;
  if (!isTrustedHost(url, apiUrl)) return { is: 'gone', text: 'The file is kept outside of Slack' };
  if (size != null && size > maxBytes) return { is: 'gone', text: `The file is larger than ${maxBytes} bytes` };
  return request({ url, botToken, isPage: mimetype === 'text/html' }, { clock, maxBytes, signal });
}

const gone: Download = { is: 'gone', text: 'The file does not exist any more' };

interface ReadOptions {
  readonly clock: WireClock;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

async function request(
  { url, botToken, isPage }: { readonly url: string; readonly botToken: string; readonly isPage: boolean },
  { clock, maxBytes, signal }: ReadOptions,
): Promise<Download> {
  const idle = new Idle(clock);
  try {
    const response = await fetch(url, {
      headers: { authorization: `Bearer ${botToken}`, 'user-agent': 'gatehouse' },
      redirect: 'manual',
      signal: AbortSignal.any([signal, idle.signal]),
    });
    idle.stop();
    const type = response.headers.get('content-type') ?? '';
    // Without the scope files:read a page to log in comes instead of the file.
    const refused =
      response.status !== 200 ? `Slack answered ${response.status}` : type.startsWith('text/html') && !isPage ? 'it is a page to log in' : undefined;
    if (refused === undefined && response.body !== null) return { is: 'opened', stream: chunksOf(response.body, idle, maxBytes) };
    await response.body?.cancel();
    if (response.status === 404 || response.status === 410) return gone;
    return { is: 'unavailable', text: `Slack did not return the file: ${refused ?? 'it has no content'}` };
  } catch {
    idle.stop();
    return { is: 'unavailable', text: 'The connection ended before the file came' };
  }
}

async function* chunksOf(body: AsyncIterable<Uint8Array>, idle: Idle, maxBytes: number): AsyncGenerator<Uint8Array> {
  let size = 0;
  try {
    idle.restart();
    for await (const chunk of body) {
      idle.stop();
      size += chunk.byteLength;
      if (size > maxBytes) throw new Error(`The file is larger than ${maxBytes} bytes`);
      yield chunk;
      idle.restart();
    }
  } finally {
    idle.stop();
  }
}

/** Aborts when nothing comes for a while; time that the reader takes does not count. */
class Idle {
  readonly #clock: WireClock;
  readonly #late = new AbortController();
  #cancel = () => {};

  constructor(clock: WireClock) {
    this.#clock = clock;
    this.restart();
  }

  get signal(): AbortSignal {
    return this.#late.signal;
  }

  restart(): void {
    this.stop();
    this.#cancel = this.#clock.after(idleMs, () => this.#late.abort());
  }

  stop(): void {
    this.#cancel();
  }
}
