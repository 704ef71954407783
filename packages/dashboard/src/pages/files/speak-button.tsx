import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { Button, Failure } from '../../ui/parts.tsx';
import { useBlobAddress } from './use-blob.ts';

/** Longer answers are read up to here. */
const maxCharacters = 4_000;

/** Reads an answer aloud; nothing where no speech is configured. Only admins see what is configured. */
export function SpeakButton({ agentId, text }: { readonly agentId: string; readonly text: string }) {
  const { client, admin } = useSession();
  const { data } = useLoad(['media.providers', admin], async (signal) => (admin ? await client.call('media.providers', {}, { signal }) : undefined));
  const { busy, error, run } = useAction();
  const [sound, setSound] = useState<{ readonly key: string; readonly blob: Blob }>();
  const { address } = useBlobAddress(sound === undefined ? undefined : async () => sound.blob, sound?.key ?? '');
  if (data === undefined || data.tts === null) return null;

  const speak = async (): Promise<void> => {
    const { filePath } = await client.call('tts.synthesize', { text: text.slice(0, maxCharacters), agentId }, { timeoutMs: 180_000 });
    const { base64, contentType } = await client.call('workspace.readBytes', { agentId, filePath });
    setSound({ key: filePath, blob: new Blob([Uint8Array.fromBase64(base64)], { type: contentType }) });
  };

  return (
    <>
      {address === undefined ? (
        <Button look="quiet" small icon="play" disabled={busy} onClick={() => run(speak)}>
          {busy ? t('Converting…') : t('Read aloud')}
        </Button>
      ) : (
        <audio controls autoPlay src={address} aria-label={t('Answer read aloud')} />
      )}
      {error !== undefined && <Failure error={error} />}
    </>
  );
}
