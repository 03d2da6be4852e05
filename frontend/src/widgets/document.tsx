/** A document of the project on the page: Markdown as elements, never as HTML. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { blocksOf, type Block, type Inline } from './markdown';
import './document.css';

export interface DocumentProps {
  markdown: string;
  /** Opens a link to another document; undefined: it leads nowhere here, and is shown as text. */
  onLink: (to: string) => (() => void) | undefined;
}

type OnLink = DocumentProps['onLink'];

function Link({ text, to, onLink }: { text: string; to: string; onLink: OnLink }): VNode {
  if (/^https?:\/\//.test(to)) {
    return (
      <a href={to} target="_blank" rel="noopener noreferrer">
        {text}
      </a>
    );
  }
  const open = onLink(to);
  if (!open) return <span>{text}</span>;
  return (
    <button type="button" class="text-link" onClick={open}>
      {text}
    </button>
  );
}

function Text({ parts, onLink }: { parts: readonly Inline[]; onLink: OnLink }): VNode {
  return (
    <>
      {parts.map((part, i) => {
        if (part.kind === 'link') return <Link key={i} text={part.text} to={part.to} onLink={onLink} />;
        if (part.kind === 'code') return <code key={i}>{part.text}</code>;
        if (part.kind === 'strong') return <strong key={i}>{part.text}</strong>;
        if (part.kind === 'emphasis') return <em key={i}>{part.text}</em>;
        return <span key={i}>{part.text}</span>;
      })}
    </>
  );
}

function ListOf({ block, onLink }: { block: Extract<Block, { kind: 'list' }>; onLink: OnLink }): VNode {
  const items = block.items.map((item, i) => (
    <li key={i}>
      <Text parts={item} onLink={onLink} />
    </li>
  ));
  return block.isOrdered ? <ol>{items}</ol> : <ul>{items}</ul>;
}

function TableOf({ block, onLink }: { block: Extract<Block, { kind: 'table' }>; onLink: OnLink }): VNode {
  return (
    <div class="document-table" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {block.head.map((cell, i) => (
              <th key={i} scope="col">
                <Text parts={cell} onLink={onLink} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {block.rows.map((row, i) => (
            <tr key={i}>
              {row.map((cell, k) => (
                <td key={k}>
                  <Text parts={cell} onLink={onLink} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function BlockOf({ block, onLink }: { block: Block; onLink: OnLink }): VNode {
  if (block.kind === 'code') return <pre tabIndex={0}>{block.text}</pre>;
  if (block.kind === 'list') return <ListOf block={block} onLink={onLink} />;
  if (block.kind === 'table') return <TableOf block={block} onLink={onLink} />;
  const text = <Text parts={block.text} onLink={onLink} />;
  if (block.kind === 'paragraph') return <p>{text}</p>;
  if (block.level === 1) return <h3>{text}</h3>;
  return block.level === 2 ? <h4 id={`doc-${block.id}`}>{text}</h4> : <h5 id={`doc-${block.id}`}>{text}</h5>;
}

export function Document({ markdown, onLink }: DocumentProps): VNode {
  const blocks = useMemo(() => blocksOf(markdown), [markdown]);
  return (
    <div class="document">
      {blocks.map((block, i) => (
        <BlockOf key={i} block={block} onLink={onLink} />
      ))}
    </div>
  );
}
