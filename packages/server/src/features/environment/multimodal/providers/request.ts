import { AppError } from '../../../../kernel/app-error.ts';
import { parseJson } from '../../../../kernel/json.ts';
import { ModelError, type ModelErrorKind } from '../../../../llm/model.ts';
import { cleanMessage, readComplaint, readRefusal, retryAfterOf } from '../../../../llm/wire/wire-error.ts';
import type { Provider } from './entry.ts';

export interface ProviderRequest {
  readonly path: string;
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly form?: MultipartBody;
  readonly body?: Uint8Array;
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface ProviderAnswer {
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

const kinds: Readonly<Partial<Record<string, ModelErrorKind>>> = {
  timeout: 'timeout',
  cancelled: 'aborted',
  payload_too_large: 'oversized',
  denied: 'network',
  invalid_params: 'network',
};

/** Sends a request to a provider. Fails with ModelError only. */
export async function askProvider(provider: Provider, request: ProviderRequest): Promise<ProviderAnswer> {
  const url = /^https?:/.test(request.path) ? request.path : `${provider.baseUrl}${request.path}`;
  const { json, form } = request;
  const sent = json === undefined ? (form?.bytes ?? request.body) : JSON.stringify(json);
  const type = json === undefined ? (form === undefined ? {} : { 'content-type': form.contentType }) : { 'content-type': 'application/json' };
  try {
    const answer = await provider.egress.request({
      url,
      method: request.method ?? 'POST',
      headers: { ...type, ...request.headers },
      ...(sent !== undefined && { body: sent }),
      maxBytes: request.maxBytes,
      timeoutMs: request.timeoutMs,
      signal: request.signal,
    });
    if (answer.status < 200 || answer.status > 299) throw refusalOf(provider, answer.status, answer.body, answer.headers);
    if (answer.truncated) throw new ModelError('oversized', `${provider.name} answered with more than ${request.maxBytes} bytes`);
    return answer;
  } catch (error) {
    if (error instanceof ModelError) throw error;
    if (!(error instanceof AppError)) throw error;
    throw new ModelError(kinds[error.code] ?? 'network', cleanMessage(error.message, secretsOf(provider)), { cause: error });
  }
}

function refusalOf(provider: Provider, status: number, body: Buffer, headers: Readonly<Record<string, string>>): ModelError {
  const complaint = readComplaint(body.toString('utf8', 0, 16_384));
  const refusal = readRefusal(status, complaint);
  const retryAfterMs = retryAfterOf(headers, provider.nowMs());
  const message = cleanMessage(complaint.message, secretsOf(provider));
  return new ModelError(refusal.kind, `${provider.name} answered ${status}${message === '' ? '' : `: ${message}`}`, {
    status,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(refusal.possibly !== undefined && { possibly: refusal.possibly }),
  });
}

const secretsOf = ({ key }: Provider): readonly string[] => (key === undefined ? [] : [key]);

/** Parses an answer as JSON by `shape`; anything else is a `bad_response`. */
export function readAnswer<T>(provider: Provider, body: Buffer, shape: { safeParse(value: unknown): { success: boolean; data?: T } }): T {
  let value: unknown;
  try {
    value = parseJson(body.toString('utf8'));
  } catch {
    throw new ModelError('bad_response', `${provider.name} did not answer with JSON`);
  }
  const parsed = shape.safeParse(value);
  if (!parsed.success || parsed.data === undefined) throw new ModelError('bad_response', `${provider.name} answered in an unknown shape`);
  return parsed.data;
}

export const bearer = ({ key }: Provider): Record<string, string> => (key === undefined ? {} : { authorization: `Bearer ${key}` });

export interface MultipartBody {
  readonly bytes: Buffer;
  readonly contentType: string;
}

interface FormFile {
  readonly name: string;
  readonly fileName: string;
  readonly contentType: string;
  readonly bytes: Uint8Array;
}

/** Builds a multipart/form-data body; values are constants or parsed parameters. */
export function multipart(boundary: string, fields: Readonly<Record<string, string | undefined>>, files: readonly FormFile[]): MultipartBody {
  const quoted = (text: string) => text.replace(/[\r\n"]/g, '_');
  const parts: Uint8Array[] = [];
  for (const [name, value] of Object.entries(fields))
    if (value !== undefined) parts.push(Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="${quoted(name)}"\r\n\r\n${value}\r\n`));
  for (const { name, fileName, contentType, bytes } of files) {
    const head = `--${boundary}\r\ncontent-disposition: form-data; name="${quoted(name)}"; filename="${quoted(fileName)}"\r\ncontent-type: ${quoted(contentType)}\r\n\r\n`;
    parts.push(Buffer.from(head), bytes, Buffer.from('\r\n'));
  }
  parts.push(Buffer.from(`--${boundary}--\r\n`));
  return { bytes: Buffer.concat(parts), contentType: `multipart/form-data; boundary=${boundary}` };
}
