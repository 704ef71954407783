import { constants } from 'node:fs';
import { mkdir, open, readdir, readFile, rm, stat } from 'node:fs/promises';
import * as z from 'zod';
import { parseJson } from '../../../../kernel/json.ts';

/** One step of a recording, a line of its file. Typed text is not in it. */
export const RecordedStep = z.object({
  step: z.int().min(1),
  atMs: z.number(),
  tookMs: z.number(),
  principalId: z.string(),
  traceId: z.string(),
  by: z.enum(['agent', 'caller', 'person']),
  action: z.string(),
  detail: z.string().optional(),
  tabId: z.string().optional(),
  url: z.string().optional(),
  title: z.string().optional(),
  ok: z.boolean(),
  error: z.string().optional(),
  /** Place of its picture in the file of pictures. */
  picture: z.strictObject({ at: z.int().min(0), bytes: z.int().min(1) }).optional(),
});
export type RecordedStep = z.output<typeof RecordedStep>;

/** Consecutive steps that could not be stored, a separate line. */
const RecordedGap = z.strictObject({ from: z.int().min(1), missing: z.int().min(1), reason: z.enum(['disk_full', 'failed']) });
export type RecordedGap = z.output<typeof RecordedGap>;

export interface KeptRecording {
  readonly agentId: string;
  readonly id: string;
  readonly bytes: number;
}

/** Place where the next line and the next picture of a recording go. What a failed write left behind is written over. */
export interface Ends {
  text: number;
  pictures: number;
}

const stepsEnd = '.steps';
const picturesEnd = '.pictures';
const name = /^(rec_[0-9a-f-]{36})(\.steps|\.pictures)$/;
/** Far more than a recording has. */
const maxStepsBytes = 8 * 1024 * 1024;

/**
 * Recordings of browsers: for each a file of lines and one of JPEGs, in a folder for each agent. They are not in the database: pictures
 * would be most of it and of each backup, and a step does not wait until they are stored.
 */
export class Recordings {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Adds a step, after the gap before it. A step whose picture does not fit any more is kept without it. */
  async append(
    agentId: string,
    id: string,
    ends: Ends,
    { step, jpeg, gap }: { readonly step: Omit<RecordedStep, 'picture'>; readonly jpeg?: Buffer | undefined; readonly gap?: RecordedGap | undefined },
  ): Promise<void> {
    await mkdir(`${this.#dir}/${agentId}`, { recursive: true, mode: 0o700 });
    const drawn =
      jpeg === undefined
        ? 0
        : await writeAt(this.#path(agentId, id, picturesEnd), ends.pictures, jpeg).then(
            () => jpeg.byteLength,
            () => 0,
          );
    const picture = drawn === 0 ? {} : { picture: { at: ends.pictures, bytes: drawn } };
    await this.#addLines(agentId, id, ends, [...(gap === undefined ? [] : [gap]), { ...step, ...picture }]);
    ends.pictures += drawn;
  }

  /** Notes steps that are missing at the end. */
  async appendGap(agentId: string, id: string, ends: Ends, gap: RecordedGap): Promise<void> {
    await this.#addLines(agentId, id, ends, [gap]);
  }

  async #addLines(agentId: string, id: string, ends: Ends, lines: readonly object[]): Promise<void> {
    const bytes = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    await writeAt(this.#path(agentId, id, stepsEnd), ends.text, bytes);
    ends.text += bytes.byteLength;
  }

  /** Lists the recordings of an agent, newest first. */
  async list(agentId: string): Promise<readonly KeptRecording[]> {
    const sizes = new Map<string, number>();
    for (const file of await entriesOf(`${this.#dir}/${agentId}`)) {
      const id = name.exec(file)?.[1];
      if (id === undefined) continue;
      const { size } = await stat(`${this.#dir}/${agentId}/${file}`).catch(() => ({ size: 0 }));
      sizes.set(id, (sizes.get(id) ?? 0) + size);
    }
    return [...sizes].map(([id, bytes]) => ({ agentId, id, bytes })).toSorted((a, b) => (a.id < b.id ? 1 : -1));
  }

  /** Lists all recordings, oldest first. */
  async all(): Promise<readonly KeptRecording[]> {
    const found: KeptRecording[] = [];
    for (const agentId of await this.agents()) found.push(...(await this.list(agentId)));
    return found.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  agents(): Promise<readonly string[]> {
    return entriesOf(this.#dir);
  }

  /** Returns the steps of a recording and what is missing between them; none when there is no such recording. */
  async read(agentId: string, id: string): Promise<{ readonly steps: readonly RecordedStep[]; readonly gaps: readonly RecordedGap[] }> {
    const path = this.#path(agentId, id, stepsEnd);
    const { size } = await stat(path).catch(() => ({ size: 0 }));
    const steps: RecordedStep[] = [];
    const gaps: RecordedGap[] = [];
    if (size === 0 || size > maxStepsBytes) return { steps, gaps };
    const text = await readFile(path, 'utf8');
    for (const written of text.split('\n')) {
      // A line that was not written whole is left out; one whose file was deleted meanwhile follows zeros.
      const line = parsed(written.replace(/^\0+/, ''));
      const step = RecordedStep.safeParse(line);
      if (step.success) steps.push(step.data);
      const gap = RecordedGap.safeParse(line);
      if (gap.success) gaps.push(gap.data);
    }
    return { steps, gaps };
  }

  async picture(agentId: string, id: string, { at, bytes }: NonNullable<RecordedStep['picture']>): Promise<Buffer | undefined> {
    await using file = await open(this.#path(agentId, id, picturesEnd)).catch(() => undefined);
    const buffer = Buffer.alloc(bytes);
    const read = await file?.read(buffer, 0, bytes, at);
    return read?.bytesRead === bytes ? buffer : undefined;
  }

  /** Returns whether there was one. */
  async remove(agentId: string, id: string): Promise<boolean> {
    const path = this.#path(agentId, id, stepsEnd);
    const existed = await stat(path).then(
      () => true,
      () => false,
    );
    await rm(this.#path(agentId, id, picturesEnd), { force: true });
    await rm(path, { force: true });
    return existed;
  }

  async removeAgent(agentId: string): Promise<void> {
    await rm(`${this.#dir}/${agentId}`, { recursive: true, force: true });
  }

  #path(agentId: string, id: string, end: string): string {
    return `${this.#dir}/${agentId}/${id}${end}`;
  }
}

async function writeAt(path: string, position: number, bytes: Buffer): Promise<void> {
  await using file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  for (let done = 0; done < bytes.byteLength;) done += (await file.write(bytes, done, bytes.byteLength - done, position + done)).bytesWritten;
}

async function entriesOf(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}

function parsed(line: string): unknown {
  try {
    return parseJson(line, { maxDepth: 4 });
  } catch {
    return undefined;
  }
}
