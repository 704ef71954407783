import type { ChannelCapabilities, MediaInfo } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Log } from '../../../kernel/log.ts';
import type { MediaLibrary } from '../../environment/media/api.ts';
import type { MultimodalApi } from '../../environment/multimodal/api.ts';
import type { OutgoingFile, OutgoingMessage } from '../delivery/api.ts';

export interface VoiceDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly media: Pick<MediaLibrary, 'read' | 'save'>;
  /** Speech of the configuration. */
  readonly speech: Pick<MultimodalApi, 'assertUsable' | 'isConfigured' | 'transcribe' | 'transcribesNotes' | 'speak' | 'autoCheck'>;
  readonly capabilitiesOf: (channelType: string) => ChannelCapabilities | undefined;
}

/** The conversation that a voice note belongs to. */
export interface VoiceOf {
  readonly agentId: string;
  readonly conversationRef: string;
  readonly call: CallContext;
}

/** What was said in a recording, or why nobody knows. */
export type Heard = { readonly text: string } | { readonly why: string };

export interface Voice {
  /** Converts a recording to text; undefined when the file is none, or voice notes are not transcribed. Rejects when the call is aborted, and when the agent is suspended: its message waits. */
  hear(file: Pick<MediaInfo, 'mediaId' | 'contentType'>, about: VoiceOf): Promise<Heard | undefined>;
  /** Returns an answer with its speech, when `tts.autoMode` wants it spoken; without it when that fails. */
  speak(answer: OutgoingMessage, isReplyToVoice: boolean, about: VoiceOf): Promise<OutgoingMessage>;
}

const keepMs = 3_600_000;
const isSound = (type: string): boolean => type.startsWith('audio/') || type === 'application/ogg' || type === 'video/ogg';

/** Voice notes of chats: heard when they come in, spoken when an answer goes out. */
export function createVoice({ clock, log, media, speech, capabilitiesOf }: VoiceDeps): Voice {
  async function soundOf(text: string, channelType: string, about: VoiceOf): Promise<OutgoingFile | undefined> {
    const features = capabilitiesOf(channelType)?.features;
    if (features?.attachments !== true) return undefined;
    const forVoiceNote = features.voiceNotes;
    const { bytes, mimeType, extension, format } = await speech.speak(
      { text: await plain(text), forVoiceNote },
      { ...about, signal: about.call.signal },
    );
    const { mediaId } = await media.save(
      { body: once(bytes), size: bytes.byteLength, fileName: `voice.${extension}`, expiresAtMs: clock.ageNow() + keepMs },
      about.call,
    );
    return {
      mediaId,
      kind: forVoiceNote && format === 'opus' ? 'voice' : 'audio',
      name: `voice.${extension}`,
      mediaType: mimeType,
      bytes: bytes.byteLength,
    };
  }

  return {
    async hear({ mediaId, contentType }, about) {
      if (!isSound(contentType) || !speech.transcribesNotes) return undefined;
      // What follows would be stored with the message as the reason why nothing was understood.
      speech.assertUsable(about);
      try {
        const bytes = await media.read(mediaId);
        if (bytes === undefined) return { why: 'it is gone' };
        const { text } = await speech.transcribe({ bytes, param: 'recording' }, { ...about, signal: about.call.signal });
        return text === '' ? { why: 'nothing was said' } : { text };
      } catch (error) {
        if (about.call.signal.aborted || !(error instanceof AppError)) throw error;
        log.warn({ err: error, agentId: about.agentId }, 'Failed to transcribe a voice note');
        return { why: error.message };
      }
    },
    async speak(answer, isReplyToVoice, about) {
      if (!speech.isConfigured('speech')) return answer;
      const check = speech.autoCheck({ text: answer.text, hasInboundAudio: isReplyToVoice, hasMedia: (answer.files?.length ?? 0) > 0 });
      const written = { ...answer, text: check.strippedText ?? answer.text };
      if (!check.shouldSynthesize) return written;
      try {
        const file = await soundOf(answer.text, answer.to.channelType, about);
        return file === undefined ? written : { ...written, files: [...(answer.files ?? []), file] };
      } catch (error) {
        log.warn({ err: error, agentId: about.agentId }, 'Failed to speak an answer; it is sent as text');
        return written;
      }
    },
  };
}

/** Marks of Markdown are not read out. */
async function plain(text: string): Promise<string> {
  const { render } = await import('../../../channels/render/render.ts');
  return render(text, 'plain').text;
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
