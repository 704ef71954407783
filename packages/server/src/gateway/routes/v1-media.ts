import { ImageRequest, SpeechRequest, TranscriptionFields } from '@gatehouse/contract';
import type { ForAgent, MultimodalApi } from '../../features/environment/multimodal/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import type { CallContext } from '../../kernel/call-context.ts';
import type { Clock } from '../../kernel/clock.ts';
import { readJsonBody } from '../body.ts';
import type { HttpCall } from '../http-call.ts';
import { parseInput } from '../parse-input.ts';
import { pacedBody } from '../paced-body.ts';
import { sendJson } from '../reply.ts';
import { readForm } from './media-form.ts';

export interface V1MediaDeps {
  /** Absent: nothing is configured in this server. */
  readonly multimodal: MultimodalApi | undefined;
  /** The agent that pays: the default agent of the caller. */
  readonly agentOf: (call: CallContext) => string;
  readonly bodyLimit: () => number;
  readonly clock: Clock;
}

/** Fields and delimiters around the file. */
const formOverheadBytes = 64 * 1024;

type Handler = (call: HttpCall) => Promise<void>;

/** Speech and images in the shape of OpenAI, for clients that expect them. */
export function createV1MediaRoutes(deps: V1MediaDeps): Readonly<Record<'transcriptions' | 'speech' | 'images', Handler>> {
  function ready(what: Parameters<MultimodalApi['isConfigured']>[0], section: string): MultimodalApi {
    if (deps.multimodal?.isConfigured(what) !== true) throw new AppError('not_found', `Nothing is configured for this route: set ${section}`);
    return deps.multimodal;
  }
  function askedBy(call: CallContext): ForAgent {
    return { agentId: deps.agentOf(call), call, signal: call.signal };
  }

  async function formOf(call: HttpCall, limit: number) {
    try {
      const body = pacedBody(call, { limit: limit + formOverheadBytes, clock: deps.clock });
      return await readForm(call.incoming.headers['content-type'] ?? '', body, limit);
    } catch (error) {
      if (!call.incoming.complete) {
        // The rest of the body must not be taken for a request.
        call.setHeader('connection', 'close');
        call.discardsBody = true;
      }
      throw error;
    }
  }

  return {
    async transcriptions(call) {
      const api = ready('transcription', 'media.transcription.providers');
      const limit = api.maxRecordingBytes;
      const { fields, file } = await formOf(call, limit);
      const { language, response_format: format } = parseInput(TranscriptionFields(), fields, 'fields');
      const heard = await answered(() => api.transcribe({ bytes: file, language, param: 'file' }, askedBy(call.context())));
      if (format === 'text') return sendBytes(call, 'text/plain; charset=utf-8', Buffer.from(`${heard.text}\n`));
      if (format === 'json') return sendJson(call, 200, { text: heard.text });
      sendJson(call, 200, { task: 'transcribe', language: heard.language ?? '', duration: (heard.durationMs ?? 0) / 1000, text: heard.text });
    },
    async speech(call) {
      const api = ready('speech', 'tts.providers');
      const { input, voice, response_format: format, speed } = parseInput(SpeechRequest(), await readJsonBody(call, deps.bodyLimit()), 'fields');
      const spoken = await answered(() => api.speak({ text: input, voice, format, speed }, askedBy(call.context())));
      sendBytes(call, spoken.mimeType, spoken.bytes);
    },
    async images(call) {
      const api = ready('imageGeneration', 'imageGen.providers');
      const { prompt, size } = parseInput(ImageRequest(), await readJsonBody(call, deps.bodyLimit()), 'fields');
      const image = await answered(() => api.generateImage({ prompt, size }, askedBy(call.context())));
      sendJson(call, 200, { created: Math.floor(deps.clock.now() / 1000), data: [{ b64_json: image.bytes.toString('base64') }] });
    },
  };
}

function sendBytes(call: HttpCall, type: string, bytes: Buffer): void {
  call.setHeader('content-type', type);
  call.setHeader('content-length', String(bytes.byteLength));
  call.writeHead(200);
  call.outgoing.end(bytes);
}

/** Waiting does not free every budget: then the client should not try again. */
async function answered<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof AppError && error.code === 'rate_limited' && error.details.retryAfterMs === undefined)
      throw new AppError('invalid_params', error.message, { reason: 'budget_exceeded' });
    throw error;
  }
}
