import { useEffect, useState } from 'react';
import type { Attachment } from '../../data/chat-thread.ts';
import { useSession } from '../../data/context.ts';
import { bytes } from '../../data/format.ts';
import { Icon } from '../../ui/icon.tsx';

/** Types that are shown inline; all others are downloads. SVG is excluded because it can contain scripts. */
const drawn = /^image\/(png|jpeg|gif|webp|avif)$/;
const maxDrawnBytes = 8 * 1024 * 1024;

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
  return (
    <figure className="attachment">
      {address === undefined ? <Icon name="file" /> : <img src={address} alt={name} />}
      <figcaption>
        {name} <span className="hint">{bytes(info.size)}</span>
      </figcaption>
    </figure>
  );
}
