"""Dates and weekdays: functions that any component host can call."""

# Imported while the component is built: there is no disk to import from later.
from datetime import date, timedelta

from componentize_py_types import Err
from wit_world.exports import days


def as_date(value: days.Date) -> date:
    return date(value.year, value.month, value.day)


class Days:
    def parse(self, text: str) -> days.Date:
        try:
            parsed = date.fromisoformat(text)
        except ValueError as error:
            # What is raised as `Err` is the function's error. Every other exception ends the component.
            raise Err(str(error)) from None
        return days.Date(parsed.year, parsed.month, parsed.day)

    def weekday_of(self, date: days.Date) -> days.Weekday:
        return days.Weekday(as_date(date).weekday())

    def dates(self, start: days.Date, last: days.Date, every: int) -> int:
        day, end, step = as_date(start), as_date(last), timedelta(days=every)
        count = 0
        while day <= end:
            count += 1
            day += step
        return count
