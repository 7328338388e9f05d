"""How text files are written."""

import codecs
import math
from datetime import datetime

import pytest

from mbkl.tabular import FrameError, read_frame
from mbkl.tabular.delimited import unique


@pytest.fixture
def read(tmp_path):
    """Return a function that writes a file and reads it."""

    def read_text(content, name="data.csv", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_frame(path, **options)

    return read_text


def columns(frame):
    return frame.columns.to_pydict()


PEOPLE = {"age": [31, 8, 50], "town": ["Rome", "Bonn", "Nice"], "size": [1.5, 2.0, 1.25]}
ROWS = [["age", "town", "size"], *zip(*PEOPLE.values(), strict=True)]


def written(delimiter, decimal="."):
    lines = (delimiter.join(str(one) for one in row) for row in ROWS)
    head, *rest = lines
    return "\n".join([head, *(line.replace(".", decimal) for line in rest)]) + "\n"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " ", "   "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_delimiters_are_found(read, delimiter, end):
    assert columns(read(written(delimiter).replace("\n", end))) == PEOPLE


@pytest.mark.parametrize("delimiter", [";", "\t", "|", " "])
def test_decimal_commas_are_found(read, delimiter):
    text = written(delimiter, ",")
    assert columns(read(text)) == PEOPLE
    assert columns(read(text, decimal=","))["size"] == PEOPLE["size"]
    assert columns(read(text, decimal="."))["size"] == ["1,5", "2,0", "1,25"]


def test_decimal_commas_next_to_missing_values_and_dates(read):
    frame = read("a;day\n1,5;01.02.2020\n ? ;02.02.2020\n 2,5;03.02.2020\n")
    assert columns(frame)["a"] == [1.5, None, 2.5]


@pytest.mark.parametrize("options", [{}, {"decimal": ","}])
def test_quoted_decimal_commas(read, options):
    frame = read('a,b\n"1,5",2\n"2,25",3\n', **options)
    assert columns(frame) == {"a": [1.5, 2.25], "b": [2, 3]}


@pytest.mark.parametrize(
    "form", ["$1,234.50", "1234.5 \N{EURO SIGN}", "1234.5%", "-\N{POUND SIGN}1,234.5"]
)
def test_currencies_and_percents_are_numbers(read, form):
    frame = read(f'a,b\n"{form}",1\n"{form.replace("4", "5")}",2\n,3\n')
    sign = -1 if form.startswith("-") else 1
    assert columns(frame)["a"] == [1234.5 * sign, 1235.5 * sign, None]


@pytest.mark.parametrize("form", ["%d.%m.%Y", "%Y/%m/%d", "%d.%m.%Y %H:%M", "%Y/%m/%d %H:%M:%S"])
def test_dates_as_people_write_them(read, form):
    days = [datetime(2020, 12, 31, 8, 5), datetime(2021, 1, 2, 23, 0)]
    frame = read("a;b\n" + "".join(f"{day.strftime(form)};1\n" for day in days) + "?;1\n")
    read_days = [day.date() for day in columns(frame)["a"][:2]]
    assert read_days == [day.date() for day in days]
    assert columns(frame)["a"][2] is None


@pytest.mark.parametrize("written", ["12/10/2020", "31.13.2020"])
def test_dates_that_may_be_others_stay_text(read, written):
    frame = read(f"a;b\n{written};1\n{written};1\n")
    assert columns(frame)["a"][0] == written
    assert any(f"Column 'a' is text: dates as '{written}'" in note for note in frame.notes)


@pytest.mark.parametrize(
    "text", ['a,b\n"1,234.5",x\n-999,y\n', "a;b\n1.234,5;x\n-999;y\n", "a;b\n1'234.5;x\n-999;y\n"]
)
def test_digits_in_groups_are_numbers(read, text):
    assert columns(read(text))["a"] == [1234.5, -999]


@pytest.mark.parametrize("value", ["1.23,4,5", "12,34,567", "1.2.3"])
def test_other_commas_are_text(read, value):
    assert columns(read(f'a,b\n"{value}",x\n5,y\n'))["a"] == [value, "5"]


def test_commas_in_text_are_no_decimals(read):
    frame = read("a;b\nx, y;1.5\nz, w;2.5\n")
    assert columns(frame) == {"a": ["x, y", "z, w"], "b": [1.5, 2.5]}


def test_other_delimiters_inside_quotes(read):
    frame = read('a,b\n"x; y; z",1\n"u; v; w",2\n')
    assert columns(frame) == {"a": ["x; y; z", "u; v; w"], "b": [1, 2]}


@pytest.mark.parametrize("written", ["10.0.0.1", "1/2/3", "3.11.7 beta"])
def test_what_is_no_date_stays_text_without_a_word(read, written):
    frame = read(f"a;b\n{written};1\n{written};1\n")
    assert columns(frame)["a"][0] == written
    assert frame.notes == ()


def test_quoted_fields_between_spaces(read):
    frame = read('a  b\n\'x 1\n"y  z"\t2\n')
    assert columns(frame) == {"a": ["'x", "y  z"], "b": [1, 2]}


def test_one_column_of_sentences(read):
    frame = read("remark\nall is well\nnothing\nvery late again\n")
    assert columns(frame) == {"remark": ["all is well", "nothing", "very late again"]}


def test_a_tab_can_be_named_as_the_shell_writes_it(read):
    assert read("a,1\tb\n1\t2\n", delimiter="\\t").names == ["a,1", "b"]
    with pytest.raises(FrameError, match=r"data.csv: the delimiter must be one character.*--delim"):
        read("a::b\n1::2\n", delimiter="::")


def test_a_decimal_mark_is_one_character(read):
    with pytest.raises(FrameError, match=r"data.csv: the decimal mark must be one char.*--decimal"):
        read("a;b\n1,5;2\n", decimal=".,")


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("utf-8", b""),
        ("utf-8", codecs.BOM_UTF8),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("utf-32-le", codecs.BOM_UTF32_LE),
    ],
)
@pytest.mark.parametrize("header", [None, False])
def test_encodings_are_found_by_their_mark(read, encoding, mark, header):
    text = "Straße,Größe\nÄ,1\nß,2\n" if header is None else "Ä,1\nß,1\n"
    frame = read(mark + text.encode(encoding), header=header)
    first = columns(frame)["Straße" if header is None else "column_1"]
    assert first == ["Ä", "ß"]
    assert not any("encoding" in note for note in frame.notes)


def test_a_mark_next_to_a_named_encoding(read):
    assert columns(read(codecs.BOM_UTF8 + b"a,b\n1,2\n", encoding="utf-8")) == {"a": [1], "b": [2]}


def test_text_far_behind_the_sample_is_in_another_encoding(read):
    rows = b"town,a\n" + b"Rome,1\n" * 30_000 + "Köln,2\n".encode("cp1252")
    frame = read(rows)
    assert columns(frame)["town"][-1] == "Köln"
    assert "cp1252" in frame.notes[0]


def test_bytes_that_windows_does_not_know(read):
    assert "latin-1" in read(b"a,b\nx\x81,1\n").notes[0]


def test_an_encoding_without_its_mark_can_be_named(read):
    content = "a,b\nÄ,1\n".encode("utf-16-le")
    with pytest.raises(FrameError, match="--encoding"):
        read(content)
    assert columns(read(content, encoding="utf-16-le")) == {"a": ["Ä"], "b": [1]}
    with pytest.raises(FrameError, match=r"data.csv: unknown encoding: klingon.*--encoding"):
        read(content, encoding="klingon")


def test_names_that_come_twice_get_a_number(read):
    frame = read("a,b,a,a.1\n1,2,3,4\n")
    assert frame.names == ["a", "b", "a.2", "a.1"]
    assert "named 'a.2'" in frame.notes[0]
    assert list(unique(["", "", "a", "a", "a"])) == ["Unnamed: 0", "Unnamed: 1", "a", "a.1", "a.2"]


@pytest.mark.parametrize("text", ["a,b,\n1,2,\n3,4,\n", "a,b\n1,2,\n3,4,\n", "a,b,\n1,2\n3,4\n"])
def test_delimiters_at_the_end_of_lines(read, text):
    frame = read(text)
    assert columns(frame) == {"a": [1, 3], "b": [2, 4]}
    assert frame.notes == ()


@pytest.mark.parametrize(
    "above", ["# made by hand\n", "# a, b\n\n%\n", "\n\n", "sep=,\n", '# "open\n']
)
def test_comments_above_the_names(read, above):
    assert columns(read(above + "a,b\n1,2\n\n3,4\n")) == {"a": [1, 3], "b": [2, 4]}


def test_names_that_look_like_a_comment(read):
    assert read("# made by hand\n#a,b\n1,2\n").names == ["a", "b"]


def test_names_of_several_lines(read):
    assert columns(read('"a\nb",c\n1,2\n3,4\n')) == {"a\nb": [1, 3], "c": [2, 4]}


def test_a_quote_that_is_never_closed(read):
    with pytest.raises(FrameError, match=r"data\.csv"):
        read('a,b\n"1,2\n' + "3,4\n" * 50_000)


def test_many_columns(read):
    width = 2_000
    names = [f"{'gene ' * 20}{number}" for number in range(width)]
    lines = [",".join(names), *[",".join(["0.125"] * width)] * 3]
    frame = read("\n".join(lines))
    assert (len(frame.names), frame.n_rows) == (width, 3)


def test_values_of_all_kinds(read):
    frame = read(
        "big,flag,day,time,mixed,empty\n"
        "12345678901234567890123,True,2020-01-01,2020-01-01 10:00:00,1,\n"
        "1,false,2020-01-02,2020-01-02 11:30:00,x,NA\n"
    )
    found = {name: str(frame.columns.column(name).type) for name in frame.names}
    assert found["big"] == "double"
    assert found["flag"] == "bool"
    assert found["day"] == "date32[day]"
    assert found["time"].startswith("timestamp")
    assert found["mixed"] == "string"
    assert found["empty"] == "null"


def test_one_row(read):
    assert columns(read("a,b\n1,x\n")) == {"a": [1], "b": ["x"]}
    assert read("5.1,x\n").n_rows == 1
    with pytest.raises(FrameError, match=r"data.csv: there are no rows"):
        read("a b c\n")


def test_numbers_with_spaces_and_signs(read):
    values = columns(read("a\n 1\n-2.5 \n+3e2\n.5\n"))["a"]
    assert all(math.isclose(one, two) for one, two in zip(values, [1, -2.5, 300, 0.5], strict=True))
