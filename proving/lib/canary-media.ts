import { silentWav } from '@gatehouse/testkit';
import type { Canaries, Scanner } from './canaries.ts';
import { sayTo, type Target } from './canary-transports.ts';
import { bearer, http } from './http.ts';
import { askForCall } from './provider.ts';

/** Providers of speech, pictures and video with a secret each; `echo` answers with what it was sent. */
export function mediaConfig(canaries: Canaries, echo: string) {
  const provider = <Type extends string>(type: Type) => ({ type, baseUrl: `${echo}/${type}`, apiKey: canaries.make(`the key of ${type} for media`) });
  return {
    media: {
      transcription: { providers: [provider('groq'), provider('deepgram')] },
      vision: { models: ['local/test-model'] },
      video: { providers: [provider('google')] },
    },
    tts: { providers: [provider('openai'), provider('elevenlabs')] },
    imageGen: { providers: [provider('fal')] },
  };
}

/** Lets providers of media refuse a key that they repeat, and reads a file with keys as a document and on a terminal. */
export async function useMedia(target: Target, scan: Scanner['scan'], unprovoked: string[]): Promise<void> {
  const say = sayTo(target, scan);
  const audio = silentWav(1).toString('base64');
  for (const [method, params] of [
    ['audio.transcribe', { audio }],
    ['tts.synthesize', { text: 'Hello' }],
    ['image.generate', { prompt: 'A red dot' }],
  ] as const) {
    const answer = await say(method, params);
    if (!answer.includes('500')) unprovoked.push(`${method} was not refused: ${answer.slice(0, 300)}`);
  }
  await say('media.providers', {});
  for (const [path, body] of [
    ['/v1/audio/speech', { model: 'openai', voice: 'alloy', input: 'Hello' }],
    ['/v1/images/generations', { prompt: 'A red dot' }],
  ] as const) {
    const { text } = await http({ ...target, path, headers: bearer(target.token), body, timeoutMs: 30_000 });
    scan(`answer of ${path}`, text);
  }
  const use = (tool: string, args: object): Promise<string> =>
    say('agent.execute', { message: askForCall(tool, args), sessionKey: `media-${tool}:desk` });
  const document = await use('read_document', { path: 'notes.txt' });
  if (!document.includes('The key is')) unprovoked.push(`no document was read: ${document.slice(0, 300)}`);
  const argv = ['sh', '-c', 'env; cat /workspace/notes.txt; sleep 60'];
  const screen = await use('terminal', { action: 'open', argv, pattern: 'the other' });
  if (!/The key is/.test(screen) && !screen.includes('jail or not at all'))
    unprovoked.push(`no terminal has shown the keys: ${screen.slice(0, 300)}`);
  await say('background.list', {});
}
