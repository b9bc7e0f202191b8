"""How the scripts here write their JSON: ASCII, one dict of a list a line, so that changes can be read."""
import json


def write(path, document):
    dump = lambda value: json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    lines = []
    for key, value in document.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines.append(dump(key) + ":[\n" + ",\n".join(dump(entry) for entry in value) + "]")
        else:
            lines.append(dump(key) + ":" + dump(value))
    path.write_text("{" + ",\n".join(lines) + "}\n")
