import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { plural } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { Markdown } from '../../markdown/markdown.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Failure, Skeleton } from '../../ui/parts.tsx';

/** Types of which the gateway extracts text (documents.md). */
const readable =
  /^(?:text\/|application\/(?:pdf|rtf|json|xml|epub\+zip|zip|gzip|x-tar|vnd\.(?:openxmlformats-officedocument|oasis\.opendocument)\.)|message\/rfc822)/;

/** A button that shows the text of a document, as an agent reads it; nothing for other files. */
export function DocumentText({ mediaId, name, contentType }: { readonly mediaId: string; readonly name: string; readonly contentType: string }) {
  const [isOpen, setOpen] = useState(false);
  if (!readable.test(contentType)) return null;
  return (
    <>
      <Button small look="quiet" label={t('Show text of {name}', { name })} onClick={() => setOpen(true)}>
        {t('Show text')}
      </Button>
      {isOpen && (
        <Dialog wide title={name} onClose={() => setOpen(false)}>
          <TextOf mediaId={mediaId} />
        </Dialog>
      )}
    </>
  );
}

function TextOf({ mediaId }: { readonly mediaId: string }) {
  const { client } = useSession();
  const { data, error, reload } = useLoad(['media.extract_document', mediaId], (signal) =>
    client.call('media.extract_document', { attachment_url: mediaId }, { signal, timeoutMs: 180_000 }),
  );
  return (
    <div className="dialog-body document-text" tabIndex={0} role="region" aria-label={t('Text of the document')}>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {data === undefined && error === undefined && <Skeleton lines={6} />}
      {data !== undefined && (
        <>
          <p className="hint">
            {plural(data.extractedChars, 'character')}
            {data.truncated && t(', the beginning of a longer document')}
          </p>
          {data.text === '' ? <p>{t('This document has no text.')}</p> : <Markdown text={data.text} />}
        </>
      )}
    </div>
  );
}
