import { useEffect, useState } from 'react';
import type { Attachment } from '../../data/chat-thread.ts';
import { useSession } from '../../data/context.ts';
import { bytes } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { Icon } from '../../ui/icon.tsx';
import { Button, Failure } from '../../ui/parts.tsx';

/** Types that are shown inline; all others are downloads. SVG is excluded because it can contain scripts. */
const drawn = /^image\/(png|jpeg|gif|webp|avif)$/;
const maxDrawnBytes = 8 * 1024 * 1024;
/** How long a file that was opened stays available to its tab. */
const keptMs = 60_000;

export function AttachmentList({ attachments }: { readonly attachments: readonly Attachment[] }) {
  return (
    <ul className="attachments">
      {attachments.map((info) => (
        <li key={info.mediaId}>
          <AttachmentView info={info} />
        </li>
      ))}
    </ul>
  );
}

function AttachmentView({ info }: { readonly info: Attachment }) {
  const { client } = useSession();
  const [address, setAddress] = useState<string>();
  const isDrawn = drawn.test(info.contentType) && info.size <= maxDrawnBytes;
  useEffect(() => {
    if (!isDrawn) return undefined;
    const abort = new AbortController();
    let made: string | undefined;
    // An image element can't send the token, and a URL must not contain it.
    client
      .media(info.mediaId, { signal: abort.signal })
      .then((response) => response.blob())
      .then(
        (blob) => {
          if (abort.signal.aborted) return;
          made = URL.createObjectURL(blob);
          setAddress(made);
        },
        () => undefined,
      );
    return () => {
      abort.abort();
      if (made !== undefined) URL.revokeObjectURL(made);
    };
  }, [client, info.mediaId, isDrawn]);
  const name = info.fileName ?? info.mediaId;
  if (!isDrawn) return <FileButton info={info} name={name} />;
  return (
    <figure className="attachment">
      {address === undefined ? <Icon name="file" /> : <img src={address} alt={name} />}
      <figcaption>
        {name} <span className="hint">{bytes(info.size)}</span>
      </figcaption>
    </figure>
  );
}

/** Opens a PDF in a new tab, whose viewer keeps it apart from this page, and saves any other file. */
function FileButton({ info, name }: { readonly info: Attachment; readonly name: string }) {
  const { client } = useSession();
  const { busy, error, run } = useAction();
  const isPdf = info.contentType === 'application/pdf';
  const open = async (): Promise<void> => {
    const content = await (await client.media(info.mediaId)).arrayBuffer();
    // Only with this type: a page with scripts would have the address of the dashboard.
    const address = URL.createObjectURL(new Blob([content], { type: isPdf ? 'application/pdf' : 'application/octet-stream' }));
    const link = document.createElement('a');
    link.href = address;
    if (isPdf) link.target = '_blank';
    else link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), keptMs);
  };
  return (
    <div className="attachment">
      <Button small icon={isPdf ? 'file' : 'download'} disabled={busy} onClick={() => run(open)}>
        {isPdf ? 'Open' : 'Save'} {name}
      </Button>
      <span className="hint">{bytes(info.size)}</span>
      {error !== undefined && <Failure error={error} />}
    </div>
  );
}
